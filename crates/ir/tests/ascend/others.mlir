#map = affine_map<(d0)[s0] -> (d0 * 4 + s0)>
module {
  func.func private @callee(memref<8x?xui8, #hivm.address_space<gm>>) -> index
  func.func @memory(%x: memref<8x?xui8, #hivm.address_space<gm>>, %shape: memref<2xindex>, %n: index, %v: f32) -> index {
    %0 = func.call @callee(%x) : (memref<8x?xui8, #hivm.address_space<gm>>) -> index
    %1 = memref.alloc(%n) : memref<?x4xf32>
    %2 = memref.alloca() : memref<4xf32>
    memref.store %v, %2[%n] : memref<4xf32>
    %3 = memref.load %2[%n] : memref<4xf32>
    %4 = memref.alloc() : memref<4xf32, #hivm.address_space<ub>>
    memref.copy %2, %4 : memref<4xf32> to memref<4xf32, #hivm.address_space<ub>>
    %5 = memref.cast %4 : memref<4xf32, #hivm.address_space<ub>> to memref<?xf32, #hivm.address_space<ub>>
    %6 = memref.memory_space_cast %4 : memref<4xf32, #hivm.address_space<ub>> to memref<4xf32>
    %7 = memref.expand_shape %4 [[0, 1]] output_shape [2, 2] : memref<4xf32, #hivm.address_space<ub>> into memref<2x2xf32, #hivm.address_space<ub>>
    %8 = memref.collapse_shape %7 [[0, 1]] : memref<2x2xf32, #hivm.address_space<ub>> into memref<4xf32, #hivm.address_space<ub>>
    %9 = memref.subview %1[0, %n] [4, 2] [1, 1] : memref<?x4xf32> to memref<4x2xf32, strided<[4, 1], offset: ?>>
    %10 = memref.reinterpret_cast %4 to offset: [%n], sizes: [2, 2], strides: [2, 1] : memref<4xf32, #hivm.address_space<ub>> to memref<2x2xf32, strided<[2, 1], offset: ?>, #hivm.address_space<ub>>
    %bytes = memref.alloc() : memref<64xi8>
    %11 = memref.view %bytes[%n] [%n] : memref<64xi8> to memref<?xf32>
    %12 = memref.reshape %4(%shape) : (memref<4xf32, #hivm.address_space<ub>>, memref<2xindex>) -> memref<2x2xf32, #hivm.address_space<ub>>
    %13 = memref.dim %1, %n : memref<?x4xf32>
    %14:4 = memref.extract_strided_metadata %4 : memref<4xf32, #hivm.address_space<ub>> -> memref<f32>, index, index, index
    %15 = memref.get_global @table : memref<4xf32>
    %16 = memref_ext.alloc_workspace() from %bytes offset = [%n] : from memref<64xi8> to memref<4x4xf32>
    annotation.mark %4 {hivm.multi_buffer = 2 : i32} : memref<4xf32, #hivm.address_space<ub>>
    annotation.mark %4 keys = ["extent"] values = [%n : index] : memref<4xf32, #hivm.address_space<ub>>
    memref.dealloc %1 : memref<?x4xf32>
    %17 = affine.apply #map(%n)[%n]
    %18 = affine.min affine_map<(d0) -> (d0, 4)>(%17)
    %19 = affine.max affine_map<()[s0] -> (s0, 4)>()[%18]
    %20 = arith.addi %17, %19 : index
    return %20 : index
  }
  func.func @tensors(%x: tensor<8x?xf32>, %b: memref<8x4xf32>, %c: tensor<8x4xf32>, %i: tensor<2xindex>, %n: index, %v: f32) -> tensor<8x4xf32> {
    %0 = tensor.empty(%n) : tensor<8x?xf32>
    %1 = arith.addf %0, %x : tensor<8x?xf32>
    %2 = arith.cmpf olt, %1, %x : tensor<8x?xf32>
    %3 = tensor.extract_slice %x[0, %n] [8, 4] [1, 1] : tensor<8x?xf32> to tensor<8x4xf32>
    %4 = tensor.insert_slice %3 into %x[0, %n] [8, 4] [1, 1] : tensor<8x4xf32> into tensor<8x?xf32>
    %5 = tensor.collapse_shape %c [[0, 1]] : tensor<8x4xf32> into tensor<32xf32>
    %6 = tensor.expand_shape %5 [[0, 1]] output_shape [8, 4] : tensor<32xf32> into tensor<8x4xf32>
    %7 = tensor.reshape %c(%i) : (tensor<8x4xf32>, tensor<2xindex>) -> tensor<4x8xf32>
    %8 = tensor.cast %x : tensor<8x?xf32> to tensor<8x4xf32>
    %9 = tensor.dim %x, %n : tensor<8x?xf32>
    %10 = tensor.extract %c[%n, %n] : tensor<8x4xf32>
    %11 = tensor.insert %10 into %c[%n, %n] : tensor<8x4xf32>
    %12 = tensor.concat dim(0) %c, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
    %13 = tensor.splat %v : tensor<8x4xf32>
    %14 = tensor.from_elements %v, %v : tensor<2xf32>
    %15 = tensor.pad %c low[0, %n] high[0, 1] {
    ^bb0(%a: index, %e: index):
      tensor.yield %v : f32
    } : tensor<8x4xf32> to tensor<8x?xf32>
    %16 = bufferization.to_tensor %b restrict writable : memref<8x4xf32>
    %17 = bufferization.to_memref %16 : memref<8x4xf32>
    bufferization.materialize_in_destination %16 in writable %b : (tensor<8x4xf32>, memref<8x4xf32>) -> ()
    %18 = bufferization.alloc_tensor(%n) : tensor<8x?xf32>
    %19 = linalg.fill ins(%v : f32) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
    // NAMED
    %20 = linalg.broadcast ins(%14 : tensor<2xf32>) outs(%c : tensor<8x4xf32>) dimensions = [0]
    %21 = linalg.transpose ins(%c : tensor<8x4xf32>) outs(%7 : tensor<4x8xf32>) permutation = [1, 0]
    %22 = linalg.reduce {arith.addf} ins(%c : tensor<8x4xf32>) outs(%14 : tensor<2xf32>) dimensions = [0]
    %23 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%c : tensor<8x4xf32>) outs(%c : tensor<8x4xf32>) {
    ^bb0(%a: f32, %e: f32):
      linalg.yield %a : f32
    } -> tensor<8x4xf32>
    %24 = scope.scope : () -> tensor<8x4xf32> {
      scope.return %23 : tensor<8x4xf32>
    } {no_inline}
    %mask = vector.constant_mask [3] : vector<4xi1>
    %25 = vector.create_mask %n : vector<4xi1>
    %26 = vector.transfer_read %b[%n, %n], %v, %mask {in_bounds = [true]} : memref<8x4xf32>, vector<4xf32>
    vector.transfer_write %26, %b[%n, %n] {in_bounds = [true]} : vector<4xf32>, memref<8x4xf32>
    %27 = vector.transfer_write %26, %c[%n, %n] : vector<4xf32>, tensor<8x4xf32>
    %28 = vector.shape_cast %26 : vector<4xf32> to vector<2x2xf32>
    %29 = vector.broadcast %v : f32 to vector<4xf32>
    %30 = vector.multi_reduction <add>, %28, %v [0, 1] : vector<2x2xf32> to f32
    %31 = arith.constant dense<0.000000e+00> : vector<4xf32>
    return %24 : tensor<8x4xf32>
  }
}
