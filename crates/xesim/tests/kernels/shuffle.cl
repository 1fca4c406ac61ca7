__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(32,1,1)))
void shuffle(__global const int* x, __global int* z) {
  int i = get_local_id(0);
  z[i] = intel_sub_group_shuffle(x[i], 15 - get_sub_group_local_id()) + 1000 * get_sub_group_id()
     + 100000*sub_group_reduce_add(x[i]);
}