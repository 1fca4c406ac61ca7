module {
  tt.func public @sparse_kernel(%arg0: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %arg3: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %arg4: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg5: f32, %arg6: i32 {tt.divisibility = 16 : i32}, %arg7: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c64_i32 = arith.constant 64 : i32
    %cst = arith.constant dense<256> : tensor<32xi32>
    %cst_0 = arith.constant dense<288> : tensor<64x1xi64>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<64x256xbf16>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<64x32xbf16>
    %cst_3 = arith.constant dense<-1.000000e+30> : tensor<64xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x256xf32>
    %cst_6 = arith.constant 1.44269502 : f32
    %c0_i32 = arith.constant 0 : i32
    %cst_7 = arith.constant dense<-1> : tensor<64xi32>
    %cst_8 = arith.constant dense<0> : tensor<64xi32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_10 = arith.constant dense<0xFF800000> : tensor<64x64xf32>
    %cst_11 = arith.constant dense<1.000000e+00> : tensor<64xf32>
    %cst_12 = arith.constant dense<256> : tensor<64x1xi64>
    %0 = tt.get_program_id x : i32
    %1 = arith.extsi %0 : i32 to i64
    %2 = tt.get_program_id y : i32
    %3 = arith.muli %2, %c64_i32 : i32
    %4 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %5 = tt.splat %3 : i32 -> tensor<64xi32>
    %6 = arith.addi %5, %4 : tensor<64xi32>
    %7 = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %8 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %9 = arith.addi %8, %cst : tensor<32xi32>
    %10 = tt.expand_dims %6 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %11 = tt.splat %arg6 : i32 -> tensor<64x1xi32>
    %12 = arith.cmpi slt, %10, %11 : tensor<64x1xi32>
    %13 = arith.extsi %arg6 : i32 to i64
    %14 = arith.muli %1, %13 : i64
    %15 = arith.extsi %6 : tensor<64xi32> to tensor<64xi64>
    %16 = tt.splat %14 : i64 -> tensor<64xi64>
    %17 = arith.addi %16, %15 : tensor<64xi64>
    %18 = tt.expand_dims %17 {axis = 1 : i32} : tensor<64xi64> -> tensor<64x1xi64>
    %19 = arith.muli %18, %cst_0 : tensor<64x1xi64>
    %20 = tt.splat %arg0 : !tt.ptr<bf16> -> tensor<64x1x!tt.ptr<bf16>>
    %21 = tt.addptr %20, %19 : tensor<64x1x!tt.ptr<bf16>>, tensor<64x1xi64>
    %22 = tt.expand_dims %7 {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %23 = tt.broadcast %21 : tensor<64x1x!tt.ptr<bf16>> -> tensor<64x256x!tt.ptr<bf16>>
    %24 = tt.broadcast %22 : tensor<1x256xi32> -> tensor<64x256xi32>
    %25 = tt.addptr %23, %24 : tensor<64x256x!tt.ptr<bf16>>, tensor<64x256xi32>
    %26 = tt.broadcast %12 : tensor<64x1xi1> -> tensor<64x256xi1>
    %27 = tt.load %25, %26, %cst_1 : tensor<64x256x!tt.ptr<bf16>>
    %28 = tt.expand_dims %9 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %29 = tt.broadcast %21 : tensor<64x1x!tt.ptr<bf16>> -> tensor<64x32x!tt.ptr<bf16>>
    %30 = tt.broadcast %28 : tensor<1x32xi32> -> tensor<64x32xi32>
    %31 = tt.addptr %29, %30 : tensor<64x32x!tt.ptr<bf16>>, tensor<64x32xi32>
    %32 = tt.broadcast %12 : tensor<64x1xi1> -> tensor<64x32xi1>
    %33 = tt.load %31, %32, %cst_2 : tensor<64x32x!tt.ptr<bf16>>
    %34 = arith.mulf %arg5, %cst_6 : f32
    %35 = arith.extsi %arg7 : i32 to i64
    %36 = arith.muli %1, %35 : i64
    %37 = tt.addptr %arg2, %36 : !tt.ptr<i32>, i64
    %38 = tt.splat %37 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %39 = tt.splat %arg7 : i32 -> tensor<64xi32>
    %40 = tt.splat %arg1 : !tt.ptr<bf16> -> tensor<64x1x!tt.ptr<bf16>>
    %41 = tt.splat %34 : f32 -> tensor<64x64xf32>
    %42:3 = scf.for %arg8 = %c0_i32 to %arg7 step %c64_i32 iter_args(%arg9 = %cst_3, %arg10 = %cst_4, %arg11 = %cst_5) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x256xf32>)  : i32 {
      %61 = tt.splat %arg8 : i32 -> tensor<64xi32>
      %62 = arith.addi %61, %4 : tensor<64xi32>
      %63 = tt.addptr %38, %62 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %64 = arith.cmpi slt, %62, %39 : tensor<64xi32>
      %65 = tt.load %63, %64, %cst_7 : tensor<64x!tt.ptr<i32>>
      %66 = arith.cmpi sge, %65, %cst_8 : tensor<64xi32>
      %67 = arith.extsi %65 : tensor<64xi32> to tensor<64xi64>
      %68 = tt.expand_dims %67 {axis = 1 : i32} : tensor<64xi64> -> tensor<64x1xi64>
      %69 = arith.muli %68, %cst_0 : tensor<64x1xi64>
      %70 = tt.addptr %40, %69 : tensor<64x1x!tt.ptr<bf16>>, tensor<64x1xi64>
      %71 = tt.broadcast %70 : tensor<64x1x!tt.ptr<bf16>> -> tensor<64x256x!tt.ptr<bf16>>
      %72 = tt.addptr %71, %24 : tensor<64x256x!tt.ptr<bf16>>, tensor<64x256xi32>
      %73 = tt.expand_dims %66 {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>
      %74 = tt.broadcast %73 : tensor<64x1xi1> -> tensor<64x256xi1>
      %75 = tt.load %72, %74, %cst_1 : tensor<64x256x!tt.ptr<bf16>>
      %76 = tt.broadcast %70 : tensor<64x1x!tt.ptr<bf16>> -> tensor<64x32x!tt.ptr<bf16>>
      %77 = tt.addptr %76, %30 : tensor<64x32x!tt.ptr<bf16>>, tensor<64x32xi32>
      %78 = tt.broadcast %73 : tensor<64x1xi1> -> tensor<64x32xi1>
      %79 = tt.load %77, %78, %cst_2 : tensor<64x32x!tt.ptr<bf16>>
      %80 = tt.trans %75 {order = array<i32: 1, 0>} : tensor<64x256xbf16> -> tensor<256x64xbf16>
      %81 = tt.dot %27, %80, %cst_9, inputPrecision = tf32 : tensor<64x256xbf16> * tensor<256x64xbf16> -> tensor<64x64xf32>
      %82 = tt.trans %79 {order = array<i32: 1, 0>} : tensor<64x32xbf16> -> tensor<32x64xbf16>
      %83 = tt.dot %33, %82, %81, inputPrecision = tf32 : tensor<64x32xbf16> * tensor<32x64xbf16> -> tensor<64x64xf32>
      %84 = arith.mulf %83, %41 : tensor<64x64xf32>
      %85 = tt.expand_dims %66 {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
      %86 = tt.broadcast %85 : tensor<1x64xi1> -> tensor<64x64xi1>
      %87 = arith.select %86, %84, %cst_10 : tensor<64x64xi1>, tensor<64x64xf32>
      %88 = "tt.reduce"(%87) <{axis = 1 : i32}> ({
      ^bb0(%arg12: f32, %arg13: f32):
        %104 = arith.maxnumf %arg12, %arg13 : f32
        tt.reduce.return %104 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %89 = arith.maxnumf %arg9, %88 : tensor<64xf32>
      %90 = tt.expand_dims %89 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %91 = tt.broadcast %90 : tensor<64x1xf32> -> tensor<64x64xf32>
      %92 = arith.subf %87, %91 : tensor<64x64xf32>
      %93 = math.exp2 %92 : tensor<64x64xf32>
      %94 = arith.subf %arg9, %89 : tensor<64xf32>
      %95 = math.exp2 %94 : tensor<64xf32>
      %96 = arith.mulf %arg10, %95 : tensor<64xf32>
      %97 = "tt.reduce"(%93) <{axis = 1 : i32}> ({
      ^bb0(%arg12: f32, %arg13: f32):
        %104 = arith.addf %arg12, %arg13 : f32
        tt.reduce.return %104 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %98 = arith.addf %96, %97 : tensor<64xf32>
      %99 = arith.truncf %93 : tensor<64x64xf32> to tensor<64x64xbf16>
      %100 = tt.expand_dims %95 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %101 = tt.broadcast %100 : tensor<64x1xf32> -> tensor<64x256xf32>
      %102 = arith.mulf %arg11, %101 : tensor<64x256xf32>
      %103 = tt.dot %99, %75, %102, inputPrecision = tf32 : tensor<64x64xbf16> * tensor<64x256xbf16> -> tensor<64x256xf32>
      scf.yield %89, %98, %103 : tensor<64xf32>, tensor<64xf32>, tensor<64x256xf32>
    }
    %43 = arith.cmpf oeq, %42#1, %cst_4 : tensor<64xf32>
    %44 = arith.select %43, %cst_11, %42#1 : tensor<64xi1>, tensor<64xf32>
    %45 = arith.muli %18, %cst_12 : tensor<64x1xi64>
    %46 = tt.splat %arg3 : !tt.ptr<bf16> -> tensor<64x1x!tt.ptr<bf16>>
    %47 = tt.addptr %46, %45 : tensor<64x1x!tt.ptr<bf16>>, tensor<64x1xi64>
    %48 = tt.broadcast %47 : tensor<64x1x!tt.ptr<bf16>> -> tensor<64x256x!tt.ptr<bf16>>
    %49 = tt.addptr %48, %24 : tensor<64x256x!tt.ptr<bf16>>, tensor<64x256xi32>
    %50 = tt.expand_dims %44 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %51 = tt.broadcast %50 : tensor<64x1xf32> -> tensor<64x256xf32>
    %52 = arith.divf %42#2, %51 : tensor<64x256xf32>
    %53 = arith.truncf %52 : tensor<64x256xf32> to tensor<64x256xbf16>
    tt.store %49, %53, %26 : tensor<64x256x!tt.ptr<bf16>>
    %54 = tt.addptr %arg4, %14 : !tt.ptr<f32>, i64
    %55 = tt.splat %54 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %56 = tt.addptr %55, %6 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %57 = math.log2 %44 : tensor<64xf32>
    %58 = arith.addf %42#0, %57 : tensor<64xf32>
    %59 = tt.splat %arg6 : i32 -> tensor<64xi32>
    %60 = arith.cmpi slt, %6, %59 : tensor<64xi32>
    tt.store %56, %58, %60 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
