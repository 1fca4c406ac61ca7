module {
  tt.func public @paged(%T: !tt.ptr<i32>, %A: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %B: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %C: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %M: i32 {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}, %sam: i32 {tt.divisibility = 16 : i32}, %sbk: i32 {tt.divisibility = 16 : i32}, %scm: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %za = arith.constant dense<0.000000e+00> : tensor<128x64xf16>
    %zb = arith.constant dense<0.000000e+00> : tensor<64x128xf16>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %cBM = arith.constant 128 : i32
    %cBN = arith.constant 128 : i32
    %cBK = arith.constant 64 : i32
    %cBK1 = arith.constant 63 : i32
    %pm = tt.get_program_id x : i32
    %pn = tt.get_program_id y : i32
    %om = arith.muli %pm, %cBM : i32
    %on = arith.muli %pn, %cBN : i32
    %rm = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rn = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rk = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %oms = tt.splat %om : i32 -> tensor<128xi32>
    %am = arith.addi %oms, %rm : tensor<128xi32>
    %ons = tt.splat %on : i32 -> tensor<128xi32>
    %bn = arith.addi %ons, %rn : tensor<128xi32>
    %am1 = tt.expand_dims %am {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %sams = tt.splat %sam : i32 -> tensor<128x1xi32>
    %amo = arith.muli %am1, %sams : tensor<128x1xi32>
    %k0 = tt.expand_dims %rk {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %amb = tt.broadcast %amo : tensor<128x1xi32> -> tensor<128x64xi32>
    %kb = tt.broadcast %k0 : tensor<1x64xi32> -> tensor<128x64xi32>
    %ao = arith.addi %amb, %kb : tensor<128x64xi32>
    %Asp = tt.splat %A : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
    %ap = tt.addptr %Asp, %ao : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %k1 = tt.expand_dims %rk {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %sbks = tt.splat %sbk : i32 -> tensor<64x1xi32>
    %bko = arith.muli %k1, %sbks : tensor<64x1xi32>
    %bn0 = tt.expand_dims %bn {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %bkb = tt.broadcast %bko : tensor<64x1xi32> -> tensor<64x128xi32>
    %bnb = tt.broadcast %bn0 : tensor<1x128xi32> -> tensor<64x128xi32>
    %bo = arith.addi %bkb, %bnb : tensor<64x128xi32>
    %Bsp = tt.splat %B : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %bp = tt.addptr %Bsp, %bo : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %sb = arith.muli %sbk, %cBK : i32
    %sbs = tt.splat %sb : i32 -> tensor<64x128xi32>
    %sas = arith.constant dense<64> : tensor<128x64xi32>
    %kk = arith.addi %K, %cBK1 : i32
    %nk = arith.divsi %kk, %cBK : i32
    %r:3 = scf.for %i = %c0 to %nk step %c1 iter_args(%acc = %cst, %pa = %ap, %pb = %bp) -> (tensor<128x128xf32>, tensor<128x64x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>)  : i32 {
      %ik = arith.muli %i, %cBK : i32
      %rem = arith.subi %K, %ik : i32
      %rem0 = tt.splat %rem : i32 -> tensor<1x64xi32>
      %ma = arith.cmpi slt, %k0, %rem0 : tensor<1x64xi32>
      %mab = tt.broadcast %ma : tensor<1x64xi1> -> tensor<128x64xi1>
      %tp = tt.addptr %T, %i : !tt.ptr<i32>, i32
      %page = tt.load %tp : !tt.ptr<i32>
      %page64 = arith.muli %page, %cBK : i32
      %pages = tt.splat %page64 : i32 -> tensor<128x64xi32>
      %pq = tt.addptr %ap, %pages : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
      %a = tt.load %pq, %mab, %za : tensor<128x64x!tt.ptr<f16>>
      %rem1 = tt.splat %rem : i32 -> tensor<64x1xi32>
      %mb = arith.cmpi slt, %k1, %rem1 : tensor<64x1xi32>
      %mbb = tt.broadcast %mb : tensor<64x1xi1> -> tensor<64x128xi1>
      %b = tt.load %pb, %mbb, %zb : tensor<64x128x!tt.ptr<f16>>
      %d = tt.dot %a, %b, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %pa2 = tt.addptr %pa, %sas : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
      %pb2 = tt.addptr %pb, %sbs : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
      scf.yield %d, %pa2, %pb2 : tensor<128x128xf32>, tensor<128x64x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>
    }
    %c = arith.truncf %r#0 : tensor<128x128xf32> to tensor<128x128xf16>
    %cm1 = tt.expand_dims %am {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %scms = tt.splat %scm : i32 -> tensor<128x1xi32>
    %cmo = arith.muli %cm1, %scms : tensor<128x1xi32>
    %Csp = tt.splat %C : !tt.ptr<f16> -> tensor<128x1x!tt.ptr<f16>>
    %cp1 = tt.addptr %Csp, %cmo : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>
    %cp2 = tt.broadcast %cp1 : tensor<128x1x!tt.ptr<f16>> -> tensor<128x128x!tt.ptr<f16>>
    %cnb = tt.broadcast %bn0 : tensor<1x128xi32> -> tensor<128x128xi32>
    %cp = tt.addptr %cp2, %cnb : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    %Ms = tt.splat %M : i32 -> tensor<128x1xi32>
    %mm = arith.cmpi slt, %cm1, %Ms : tensor<128x1xi32>
    %Ns = tt.splat %N : i32 -> tensor<1x128xi32>
    %mn = arith.cmpi slt, %bn0, %Ns : tensor<1x128xi32>
    %mmb = tt.broadcast %mm : tensor<128x1xi1> -> tensor<128x128xi1>
    %mnb = tt.broadcast %mn : tensor<1x128xi1> -> tensor<128x128xi1>
    %mc = arith.andi %mmb, %mnb : tensor<128x128xi1>
    tt.store %cp, %c, %mc : tensor<128x128x!tt.ptr<f16>>
    tt.return
  }
}
