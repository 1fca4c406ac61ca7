uint8 __builtin_IB_subgroup_block_read_flat_transpose_u32_k8(long base, int w, int h, int p, int2 c);
void __builtin_IB_subgroup_block_write_flat_u32_m8k16v1(long base, int w, int h, int p, int2 c, uint8 v);
float8 __attribute__((overloadable)) intel_sub_group_bf16_bf16_matrix_mad_k16(short8 a, int8 b, float8 c);
void __builtin_IB_subgroup_block_read_prefetch_u32_m8k16v1(long base, int w, int h, int p, int2 c);
__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(16,1,1)))
void transpose(__global const uint* x, __global uint* z, __global float* s) {
  __builtin_IB_subgroup_block_read_prefetch_u32_m8k16v1((long)x, 63, 15, 63, (int2)(0, 0));
  uint8 v = __builtin_IB_subgroup_block_read_flat_transpose_u32_k8((long)x, 63, 15, 63, (int2)(4, 0));
  __builtin_IB_subgroup_block_write_flat_u32_m8k16v1((long)z, 63, 7, 63, (int2)(0, 0), v);
  short8 a = (short8)((short)(0x3f80 + get_sub_group_local_id() * 0x80));
  int8 b = (int8)(0x40003f80);
  float8 d = intel_sub_group_bf16_bf16_matrix_mad_k16(a, b, (float8)(0.5f));
  s[get_sub_group_local_id()] = d.s3;
}
