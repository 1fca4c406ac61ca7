__kernel __attribute__((intel_reqd_sub_group_size(16)))
void softmax(__global const half* x, __global float* y, int n) {
  int row = get_group_id(0) * get_num_sub_groups() + get_sub_group_id();
  float top = -1e30f;
  for (int i = get_sub_group_local_id(); i < n; i += 16) top = fmax(top, convert_float(x[row * n + i]));
  top = sub_group_reduce_max(top);
  float sum = 0;
  for (int i = get_sub_group_local_id(); i < n; i += 16) sum += exp(convert_float(x[row * n + i]) - top);
  sum = sub_group_reduce_add(sum);
  for (int i = get_sub_group_local_id(); i < n; i += 16) y[row * n + i] = exp(convert_float(x[row * n + i]) - top) / sum;
}
