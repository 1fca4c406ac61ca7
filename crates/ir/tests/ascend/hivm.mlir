module attributes {hacc.target = #hacc.target<"Ascend910B1">, hivm.module_core_type = #hivm.module_core_type<MIX>} {
  func.func @copies(%gm: memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>, %t: tensor<16x?xf16>, %n: index, %c: i1) attributes {hacc.entry, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %zero = arith.constant 0.000000e+00 : f16
    %a = arith.constant 64 : i64
    %ub = hivm.hir.pointer_cast(%a) : memref<16x16xf16, #hivm.address_space<ub>>
    %ring = hivm.hir.pointer_cast(%a, %a) [%n] : memref<16x?xf16, #hivm.address_space<ub>>
    %l1 = memref.alloc() : memref<16x16xf16, #hivm.address_space<cbuf>>
    %l0c = memref.alloc() : memref<16x16xf32, #hivm.address_space<cc>>
    hivm.hir.load ins(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>) outs(%ub : memref<16x16xf16, #hivm.address_space<ub>>) {inter_no_alias = true} pad_mode = <PadValue> pad_value = %zero : f16 left_padding_num = %n : index init_out_buffer = true right_padding_num = %n : index init_condition = %c : i1 eviction_policy = <EvictFirst> core_type = <VECTOR>
    hivm.hir.store ins(%ub : memref<16x16xf16, #hivm.address_space<ub>>) outs(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>) atomic = <add>
    hivm.hir.copy ins(%ub : memref<16x16xf16, #hivm.address_space<ub>>) outs(%ub : memref<16x16xf16, #hivm.address_space<ub>>) collapse_reassociation = [[0, 1]]
    hivm.hir.nd2nz {dst_continuous} ins(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>) outs(%l1 : memref<16x16xf16, #hivm.address_space<cbuf>>) init_out_buffer = true pad_value = %zero : f16 init_condition = %c : i1
    hivm.hir.nz2nd ins(%l1 : memref<16x16xf16, #hivm.address_space<cbuf>>) outs(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    hivm.hir.l12ub ins(%l1 : memref<16x16xf16, #hivm.address_space<cbuf>>) outs(%ub : memref<16x16xf16, #hivm.address_space<ub>>)
    hivm.hir.load_scale ins(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>) outs(%l1 : memref<16x16xf16, #hivm.address_space<cbuf>>) is_transposed = true
    %f = arith.constant 1.000000e+00 : f32
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>, pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>} ins(%l0c : memref<16x16xf32, #hivm.address_space<cc>>) outs(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>) quant_scale = %f : f32 dual_dst_mode = <NO_DUAL> unit_flag_mode([#hivm.unit_flag<DISABLED>]) unit_flag_cond(%c)
    %loaded = hivm.hir.load ins(%t : tensor<16x?xf16>) outs(%t : tensor<16x?xf16>) may_implicit_transpose_with_last_axis = true -> tensor<16x?xf16>
    hivm.hir.atomic_cas ins(%ub, %ub : memref<16x16xf16, #hivm.address_space<ub>>, memref<16x16xf16, #hivm.address_space<ub>>) outs(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    hivm.hir.atomic_xchg ins(%ub : memref<16x16xf16, #hivm.address_space<ub>>) outs(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    hivm.hir.atomic_rmw ins(%ub : memref<16x16xf16, #hivm.address_space<ub>>) outs(%gm : memref<16x16xf16, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>) atomic_kind = <max>
    return
  }
  func.func @vectors(%x: memref<4x32xf32>, %i: memref<4x32xi32>, %m: memref<4x32xi1>, %h: memref<4x32xf16>, %s: f32, %row: memref<1x32xf32>, %col: memref<4x1xf32>, %coli: memref<4x1xi32>, %tmp: memref<64xf32>, %t: tensor<4x32xf32>, %n: index) {
    // UNARY
    hivm.hir.vnot ins(%i : memref<4x32xi32>) outs(%i : memref<4x32xi32>)
    hivm.hir.visinf ins(%x : memref<4x32xf32>) outs(%m : memref<4x32xi1>)
    hivm.hir.visnan ins(%x : memref<4x32xf32>) outs(%m : memref<4x32xi1>)
    hivm.hir.vilogb ins(%x : memref<4x32xf32>) outs(%i : memref<4x32xi32>)
    hivm.hir.vldexp ins(%x, %x : memref<4x32xf32>, memref<4x32xf32>) outs(%x : memref<4x32xf32>)
    hivm.hir.vadd ins(%x, %s : memref<4x32xf32>, f32) outs(%x : memref<4x32xf32>)
    hivm.hir.vadd ins(%row, %x : memref<1x32xf32>, memref<4x32xf32>) outs(%x : memref<4x32xf32>) temp_buffer(%tmp : memref<64xf32>) broadcast = [0]
    %sum = hivm.hir.vadd ins(%t, %t : tensor<4x32xf32>, tensor<4x32xf32>) outs(%t : tensor<4x32xf32>) -> tensor<4x32xf32>
    hivm.hir.vsub ins(%s, %x : f32, memref<4x32xf32>) outs(%x : memref<4x32xf32>)
    hivm.hir.vmul ins(%x, %x : memref<4x32xf32>, memref<4x32xf32>) outs(%x : memref<4x32xf32>) transpose = [0, 1]
    hivm.hir.vdiv ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i : memref<4x32xi32>) isSigned = false isHP = true
    hivm.hir.vmax ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i : memref<4x32xi32>) is_signed = false
    hivm.hir.vmin ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i : memref<4x32xi32>)
    hivm.hir.vmod ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i : memref<4x32xi32>)
    hivm.hir.vmodui ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i : memref<4x32xi32>)
    hivm.hir.vpow ins(%x, %x : memref<4x32xf32>, memref<4x32xf32>) outs(%x : memref<4x32xf32>)
    hivm.hir.vand ins(%m, %m : memref<4x32xi1>, memref<4x32xi1>) outs(%m : memref<4x32xi1>)
    hivm.hir.vor ins(%m, %m : memref<4x32xi1>, memref<4x32xi1>) outs(%m : memref<4x32xi1>)
    hivm.hir.vxor ins(%m, %m : memref<4x32xi1>, memref<4x32xi1>) outs(%m : memref<4x32xi1>)
    hivm.hir.vshl ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i : memref<4x32xi32>)
    hivm.hir.vshr ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i : memref<4x32xi32>) round : false is_signed : false
    hivm.hir.vcmp ins(%x, %s : memref<4x32xf32>, f32) outs(%m : memref<4x32xi1>) compare_mode = <lt>
    hivm.hir.vsel ins(%m, %x, %s : memref<4x32xi1>, memref<4x32xf32>, f32) outs(%x : memref<4x32xf32>)
    hivm.hir.vcast ins(%x : memref<4x32xf32>) outs(%h : memref<4x32xf16>) round_mode = <floor> cast = <cast_unsigned>
    hivm.hir.vmulext ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i, %i : memref<4x32xi32>, memref<4x32xi32>)
    hivm.hir.vmulextui ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i, %i : memref<4x32xi32>, memref<4x32xi32>)
    hivm.hir.vmulextended ins(%i, %i : memref<4x32xi32>, memref<4x32xi32>) outs(%i, %i : memref<4x32xi32>, memref<4x32xi32>)
    hivm.hir.vbrc ins(%s : f32) outs(%x : memref<4x32xf32>)
    hivm.hir.vbrc ins(%col : memref<4x1xf32>) outs(%x : memref<4x32xf32>) temp_buffer(%tmp : memref<64xf32>) broadcast_dims = [1]
    hivm.hir.vreduce <sum> ins(%x : memref<4x32xf32>) outs(%col : memref<4x1xf32>) reduce_dims = [1]
    hivm.hir.vreduce <max_with_index> ins(%x : memref<4x32xf32>) outs(%col, %coli : memref<4x1xf32>, memref<4x1xi32>) temp_buffer(%tmp : memref<64xf32>) unsigned_src = false tie_break_left = true reduce_dims = [1]
    hivm.hir.varange offset[%n] strides[%n, %n] outs(%i : memref<4x32xi32>)
    hivm.hir.varange strides[%n, %n] outs(%i : memref<4x32xi32>)
    hivm.hir.vtranspose ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>) permutation = [1, 0] disable_align = true
    hivm.hir.vinterleave ins(%x, %x : memref<4x32xf32>, memref<4x32xf32>) outs(%x : memref<4x32xf32>) interleave_channel_nums = 2
    hivm.hir.vdeinterleave ins(%x : memref<4x32xf32>) outs(%x, %x : memref<4x32xf32>, memref<4x32xf32>) channel_num = 2 index_mode = <ALL_CHANNELS>
    hivm.hir.vflip ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>) flip_axis = 1
    hivm.hir.vpad ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>) low[0, %n] high[1, 2] pad_value %s : f32
    hivm.hir.vconcat dim(0) ins(%x, %x : memref<4x32xf32>, memref<4x32xf32>) outs(%x : memref<4x32xf32>)
    hivm.hir.vgather ins(%x : memref<4x32xf32>) indices(%i : memref<4x32xi32>) outs(%x : memref<4x32xf32>) gather_axis = 1
    hivm.hir.vgathermask ins(%x : memref<4x32xf32>) mask(%m : memref<4x32xi1>) outs(%x : memref<4x32xf32>)
    hivm.hir.vcumsum ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>) cum_dims = [1] reverse = false
    hivm.hir.vcumprod ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>) cum_dims = [0] reverse = true
    hivm.hir.vcummax ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>) cum_dims = [0] reverse = true
    hivm.hir.vcummin ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>) cum_dims = [0] reverse = true
    hivm.hir.vsort ins(%x : memref<4x32xf32>) outs(%x, %i : memref<4x32xf32>, memref<4x32xi32>) descending = true sort_axis = -1
    return
  }
  func.func @products(%a: memref<16x32xf16>, %b: memref<32x16xf16>, %bias: memref<16xf32>, %c: memref<16x16xf32>, %a8: memref<16x32xi8>, %k: memref<4xi8>, %a3: memref<2x16x32xf16>, %b3: memref<2x32x16xf16>, %c3: memref<2x16x16xf32>, %init: i1, %n: index, %f: i64, %t: memref<4xi64>) {
    hivm.hir.mmadL1 {b_transpose} ins(%a, %b, %init, %n, %n, %n, %bias : memref<16x32xf16>, memref<32x16xf16>, i1, index, index, index, memref<16xf32>) outs(%c : memref<16x16xf32>) sync_related_args(%f, %f : i64, i64) unit_flag_mode([#hivm.unit_flag<RESERVED>]) unit_flag_cond(%init)
    hivm.hir.batchMmadL1 ins(%a3, %b3, %init, %n, %n, %n : memref<2x16x32xf16>, memref<2x32x16xf16>, i1, index, index, index) outs(%c3 : memref<2x16x16xf32>)
    hivm.hir.mmadmxL1 b_transpose ins(%a8, %a8, %k, %k, %init, %n, %n, %n : memref<16x32xi8>, memref<16x32xi8>, memref<4xi8>, memref<4xi8>, i1, index, index, index) outs(%c : memref<16x16xf32>)
    hivm.hir.matmul ins(%a, %b : memref<16x32xf16>, memref<32x16xf16>) outs(%c : memref<16x16xf32>) bias = %bias : memref<16xf32> descale = %bias : memref<16xf32> a_transpose descale_mode = <DescalePerChannel> block_sizes(%f, %f : i64, i64) swizzle_offset = %f : i64
    hivm.hir.mix_matmul ins(%a, %b : memref<16x32xf16>, memref<32x16xf16>) post_vector_func_ins(%bias : memref<16xf32>) workspace_ins(%c : memref<16x16xf32>) outs(%c : memref<16x16xf32>) comm_params = %t : memref<4xi64>
    hivm.hir.mix_group_matmul ins(%a3, %b, %t : memref<2x16x32xf16>, memref<32x16xf16>, memref<4xi64>) outs(%c : memref<16x16xf32>) tiling_params = %t : memref<4xi64>
    hivm.hir.Conv1dL1 {groups = 1 : i32, padding = 0 : i32} ins(%a, %b, %init : memref<16x32xf16>, memref<32x16xf16>, i1) outs(%c : memref<16x16xf32>)
    hivm.hir.Conv2dL1 {groups = 1 : i32, padding = [1 : i32, 1 : i32]} ins(%a, %b, %init, %bias : memref<16x32xf16>, memref<32x16xf16>, i1, memref<16xf32>) outs(%c : memref<16x16xf32>) sync_related_args(%f : i64)
    hivm.hir.Conv3dL1 {groups = 1 : i32, padding = 0 : i32} ins(%a, %b, %init : memref<16x32xf16>, memref<32x16xf16>, i1) outs(%c : memref<16x16xf32>)
    return
  }
  func.func @order(%event: i64, %bytes: memref<?xi8>) {
    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %event]
    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %event]
    hivm.hir.pipe_barrier[<PIPE_ALL>]
    hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_MTE2>] flag = 3 ffts_base_addr = %event sync_instr_mode = <INTRA_BLOCK_SYNCHRONIZATION>
    hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_MTE2>] flag = %event
    hivm.hir.sync_block[<ALL_CUBE>, 4 : i16] ffts_base_addr = %event tcube_pipe = <PIPE_FIX> cube_pipe = <PIPE_MTE2>
    %lock = hivm.hir.create_sync_block_lock from %bytes : from memref<?xi8> to memref<1xi64>
    hivm.hir.sync_block_lock lock_var(%lock : memref<1xi64>)
    hivm.hir.sync_block_unlock lock_var(%lock : memref<1xi64>)
    hivm.hir.free_lock_var lock_var(%lock : memref<1xi64>)
    hivm.hir.anchor {id = 1 : i64}
    hivm.hir.set_ffts_base_addr %event
    return
  }
  func.func @others(%gm: memref<?xf32>, %p: !llvm.ptr, %x: tensor<8xf32>, %i: tensor<8xi64>, %m: tensor<8xi1>, %b: memref<8xf32>, %n: i32, %d: index, %s: f32) {
    %0 = hivm.hir.get_block_idx -> i64
    %1 = hivm.hir.get_block_num -> i64
    %2 = hivm.hir.get_sub_block_idx -> i64
    %3 = hivm.hir.get_sub_block_num -> i64
    %4 = hivm.hir.get_sys_cnt -> i64
    %5 = hivm.hir.multi_buffer_counter -> i64
    hivm.hir.set_mask_norm
    hivm.hir.dcci(<all_cache_lines>, <out>)
    hivm.hir.dcci(<single_cache_line>, <all>, %gm : memref<?xf32>)
    %6 = hivm.hir.load_scalar %p : !llvm.ptr -> f32
    hivm.hir.set_atomic kind = <add>[type = f32]
    hivm.hir.set_ctrl true at ctrl[60]
    %7 = hivm.hir.convert_layout %b output_shape [2, %d] {dstLayout = #hivm.data_layout<nZ>, srcLayout = #hivm.data_layout<ND>} : (memref<8xf32>) -> memref<2x?xf32>
    %8 = hivm.hir.bitcast %x : tensor<8xf32> -> tensor<8xi32>
    hivm.hir.debug {debugtype = "print", hex = false, prefix = "x"} %x : tensor<8xf32>
    hivm.hir.init_debug
    hivm.hir.finish_debug
    %9 = hivm.hir.embedding_gather ins(%gm : memref<?xf32>, %i : tensor<8xi64>, %n : i32, [%n : i32], [%n, %n : i32, i32]) outs(%x : tensor<8xf32>) -> tensor<8xf32>
    %10 = hivm.hir.gather_load ins(%gm : memref<?xf32>, %i : tensor<8xi64>, %n : i32, %m : tensor<8xi1>, %x : tensor<8xf32>) outs(%x : tensor<8xf32>) {isVolatile = false} -> tensor<8xf32>
    hivm.hir.scatter_store ins(%i : tensor<8xi64>, %x : tensor<8xf32>, %n : i32, %m : tensor<8xi1>) outs(%gm : memref<?xf32>)
    %11 = hivm.hir.local_load ins(%b : memref<8xf32>) -> tensor<8xf32>
    hivm.hir.local_store ins(%b : memref<8xf32>, %x : tensor<8xf32>)
    hivm.hir.stride_load ins(%gm : memref<?xf32>) outs(%b : memref<8xf32>) offset(%n : i32) other(%s : f32) strides([%n : i32]) numels([%n : i32])
    hivm.hir.stride_store ins(%b : memref<8xf32>) outs(%gm : memref<?xf32>) offset(%n : i32) strides([%n : i32]) numels([%n : i32])
    %12 = hivm.hir.indirect_load ins(%gm : memref<?xf32>, %i : tensor<8xi64>, %m : tensor<8xi1>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
    hivm.hir.indirect_store ins(%x : tensor<8xf32>, %i : tensor<8xi64>) outs(%gm : memref<?xf32>)
    %13 = hivm.hir.gatherT ins(%gm : memref<?xf32>, %i : tensor<8xi64>, %n : i32, %n : i32, [%n : i32], [%n : i32], [%n : i32]) outs(%x : tensor<8xf32>) -> tensor<8xf32>
    hivm.hir.scatterT ins(%gm : memref<?xf32>, %x : tensor<8xf32>, %i : tensor<8xi64>, %n : i32, %n : i32, [%n : i32], [%n : i32], [%n : i32])
    hivm.hir.index_put ins(%gm : memref<?xf32>, %i : tensor<8xi64>, %x : tensor<8xf32>, %n : i32, %n : i32, [%n : i32], [%n : i32], [%n : i32])
    %14 = hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_V>} "my.function" ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
    hivm.hir.custom_macro "my.macro" ins(%b, %n : memref<8xf32>, i32)
    return
  }
}
