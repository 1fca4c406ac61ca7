module {
  tt.func public @attn(%Q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %K: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %V: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %O: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %L: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %z = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %z2 = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
    %ninf = arith.constant dense<0xFF800000> : tensor<128xf32>
    %one = arith.constant dense<1.000000e+00> : tensor<128xf32>
    %scale = arith.constant dense<0.125> : tensor<128xf32>
    %scale2 = arith.constant dense<0.125> : tensor<128x64xf32>
    %c0 = arith.constant 0 : i32
    %cBM = arith.constant 128 : i32
    %cBN = arith.constant 64 : i32
    %pm = tt.get_program_id x : i32
    %om = arith.muli %pm, %cBM : i32
    %rm = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rn = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %rd = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rd0 = tt.expand_dims %rd {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %oms = tt.splat %om : i32 -> tensor<128xi32>
    %qm = arith.addi %oms, %rm : tensor<128xi32>
    %qpe = tt.expand_dims %qm {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %qps = tt.splat %s : i32 -> tensor<128x1xi32>
    %qpm = arith.muli %qpe, %qps : tensor<128x1xi32>
    %qpb = tt.broadcast %qpm : tensor<128x1xi32> -> tensor<128x128xi32>
    %qpc = tt.broadcast %rd0 : tensor<1x128xi32> -> tensor<128x128xi32>
    %qpo = arith.addi %qpb, %qpc : tensor<128x128xi32>
    %qpp = tt.splat %Q : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %qp = tt.addptr %qpp, %qpo : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    %kpe = tt.expand_dims %rn {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %kps = tt.splat %s : i32 -> tensor<64x1xi32>
    %kpm = arith.muli %kpe, %kps : tensor<64x1xi32>
    %kpb = tt.broadcast %kpm : tensor<64x1xi32> -> tensor<64x128xi32>
    %kpc = tt.broadcast %rd0 : tensor<1x128xi32> -> tensor<64x128xi32>
    %kpo = arith.addi %kpb, %kpc : tensor<64x128xi32>
    %kpp = tt.splat %K : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %kp = tt.addptr %kpp, %kpo : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %vpe = tt.expand_dims %rn {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %vps = tt.splat %s : i32 -> tensor<64x1xi32>
    %vpm = arith.muli %vpe, %vps : tensor<64x1xi32>
    %vpb = tt.broadcast %vpm : tensor<64x1xi32> -> tensor<64x128xi32>
    %vpc = tt.broadcast %rd0 : tensor<1x128xi32> -> tensor<64x128xi32>
    %vpo = arith.addi %vpb, %vpc : tensor<64x128xi32>
    %vpp = tt.splat %V : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %vp = tt.addptr %vpp, %vpo : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %q = tt.load %qp : tensor<128x128x!tt.ptr<f16>>
    %adv = arith.muli %s, %cBN : i32
    %advs = tt.splat %adv : i32 -> tensor<64x128xi32>
    %r:5 = scf.for %i = %c0 to %n step %cBN iter_args(%acc = %z, %l = %one, %m = %ninf, %pk = %kp, %pv = %vp) -> (tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<64x128x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>)  : i32 {
      %k = tt.load %pk : tensor<64x128x!tt.ptr<f16>>
      %kt = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
      %qk = tt.dot %q, %kt, %z2, inputPrecision = tf32 : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
      %mx = "tt.reduce"(%qk) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %t = arith.maxnumf %a, %b : f32
        tt.reduce.return %t : f32
      }) : (tensor<128x64xf32>) -> tensor<128xf32>
      %mxs = arith.mulf %mx, %scale : tensor<128xf32>
      %mij = arith.maxnumf %m, %mxs : tensor<128xf32>
      %qks = arith.mulf %qk, %scale2 : tensor<128x64xf32>
      %mije = tt.expand_dims %mij {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %mijb = tt.broadcast %mije : tensor<128x1xf32> -> tensor<128x64xf32>
      %sub = arith.subf %qks, %mijb : tensor<128x64xf32>
      %p = math.exp2 %sub : tensor<128x64xf32>
      %ms = arith.subf %m, %mij : tensor<128xf32>
      %alpha = math.exp2 %ms : tensor<128xf32>
      %lij = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %t = arith.addf %a, %b : f32
        tt.reduce.return %t : f32
      }) : (tensor<128x64xf32>) -> tensor<128xf32>
      %ae = tt.expand_dims %alpha {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %ab = tt.broadcast %ae : tensor<128x1xf32> -> tensor<128x128xf32>
      %acc2 = arith.mulf %acc, %ab : tensor<128x128xf32>
      %v = tt.load %pv : tensor<64x128x!tt.ptr<f16>>
      %ph = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
      %acc3 = tt.dot %ph, %v, %acc2, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %la = arith.mulf %l, %alpha : tensor<128xf32>
      %l2 = arith.addf %la, %lij : tensor<128xf32>
      %pk2 = tt.addptr %pk, %advs : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
      %pv2 = tt.addptr %pv, %advs : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
      scf.yield %acc3, %l2, %mij, %pk2, %pv2 : tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<64x128x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>
    }
    %le = tt.expand_dims %r#1 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %lb = tt.broadcast %le : tensor<128x1xf32> -> tensor<128x128xf32>
    %o = arith.divf %r#0, %lb : tensor<128x128xf32>
    %oh = arith.truncf %o : tensor<128x128xf32> to tensor<128x128xf16>
    %ope = tt.expand_dims %qm {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %ops = tt.splat %s : i32 -> tensor<128x1xi32>
    %opm = arith.muli %ope, %ops : tensor<128x1xi32>
    %opb = tt.broadcast %opm : tensor<128x1xi32> -> tensor<128x128xi32>
    %opc = tt.broadcast %rd0 : tensor<1x128xi32> -> tensor<128x128xi32>
    %opo = arith.addi %opb, %opc : tensor<128x128xi32>
    %opp = tt.splat %O : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
    %op = tt.addptr %opp, %opo : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
    tt.store %op, %oh : tensor<128x128x!tt.ptr<f16>>
    %lg = math.log2 %r#1 : tensor<128xf32>
    %lse = arith.addf %r#2, %lg : tensor<128xf32>
    %Ls = tt.splat %L : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %Lp = tt.addptr %Ls, %qm : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %Lp, %lse : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
