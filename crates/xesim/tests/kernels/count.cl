__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(64,1,1)))
void count(__global const int* x, __global int* z) {
  __local int part[4];
  int i = get_local_id(0);
  if (i < 4) part[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&part[x[get_global_id(0)] & 3], 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  int a = i, b = i + 1;
  for (int k = 0; k < x[0]; k++) { int t = a; a = b; b = t; }
  if (i < 4) atomic_add(&z[i], part[i] + 0 * a);
  if (i == 0) z[4 + get_group_id(0)] = a;
}
