__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(64,1,1)))
void total(__global const float* x, __global float* z) {
  __local float part[64];
  int i = get_local_id(0);
  part[i] = x[get_group_id(0) * 64 + i];
  for (int s = 32; s > 0; s /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < s) part[i] += part[i + s];
  }
  if (i == 0) z[get_group_id(0)] = part[0];
}