// The device code of the demo: PTX for sm_60 and newer, compiled by the driver when it is loaded.
//
//   fill(dst, count, value)        dst[i] = value + i
//   add(dst, src, count)           dst[i] += src[i]
//   checksum(out, src, count)      *out += sum of src[i], as 64 bits
//   spin(microseconds)             keeps one thread busy for that long
//
// dst and src are arrays of 32-bit words, out is one 64-bit word, count is 64 bits. Any grid and block
// in x. The simulated driver knows these four kernels by their names.
#pragma once

inline constexpr char kKernels[] = R"(
.version 6.0
.target sm_60
.address_size 64

.visible .entry fill(.param .u64 dst, .param .u64 count, .param .u32 value)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [dst];
  ld.param.u64 %rd2, [count];
  ld.param.u32 %r4, [value];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r1, %r2;
  cvt.u64.u32 %rd4, %r3;
  add.u64 %rd3, %rd3, %rd4;
  mov.u32 %r1, %nctaid.x;
  mul.wide.u32 %rd4, %r1, %r2;
loop:
  setp.ge.u64 %p, %rd3, %rd2;
  @%p bra done;
  cvt.u32.u64 %r5, %rd3;
  add.u32 %r5, %r5, %r4;
  shl.b64 %rd5, %rd3, 2;
  add.u64 %rd5, %rd5, %rd1;
  st.global.u32 [%rd5], %r5;
  add.u64 %rd3, %rd3, %rd4;
  bra loop;
done:
  ret;
}

.visible .entry add(.param .u64 dst, .param .u64 src, .param .u64 count)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [dst];
  ld.param.u64 %rd2, [count];
  ld.param.u64 %rd6, [src];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd6, %rd6;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r1, %r2;
  cvt.u64.u32 %rd4, %r3;
  add.u64 %rd3, %rd3, %rd4;
  mov.u32 %r1, %nctaid.x;
  mul.wide.u32 %rd4, %r1, %r2;
loop:
  setp.ge.u64 %p, %rd3, %rd2;
  @%p bra done;
  shl.b64 %rd5, %rd3, 2;
  add.u64 %rd7, %rd5, %rd6;
  add.u64 %rd5, %rd5, %rd1;
  ld.global.u32 %r4, [%rd7];
  ld.global.u32 %r5, [%rd5];
  add.u32 %r5, %r5, %r4;
  st.global.u32 [%rd5], %r5;
  add.u64 %rd3, %rd3, %rd4;
  bra loop;
done:
  ret;
}

.visible .entry checksum(.param .u64 out, .param .u64 src, .param .u64 count)
{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [src];
  ld.param.u64 %rd2, [count];
  ld.param.u64 %rd6, [out];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd6, %rd6;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r1, %r2;
  cvt.u64.u32 %rd4, %r3;
  add.u64 %rd3, %rd3, %rd4;
  mov.u32 %r1, %nctaid.x;
  mul.wide.u32 %rd4, %r1, %r2;
  mov.u64 %rd7, 0;
loop:
  setp.ge.u64 %p, %rd3, %rd2;
  @%p bra done;
  shl.b64 %rd5, %rd3, 2;
  add.u64 %rd5, %rd5, %rd1;
  ld.global.u32 %r4, [%rd5];
  cvt.u64.u32 %rd8, %r4;
  add.u64 %rd7, %rd7, %rd8;
  add.u64 %rd3, %rd3, %rd4;
  bra loop;
done:
  red.global.add.u64 [%rd6], %rd7;
  ret;
}

.visible .entry spin(.param .u64 microseconds)
{
  .reg .pred %p;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [microseconds];
  mul.lo.u64 %rd1, %rd1, 1000;
  mov.u64 %rd2, %globaltimer;
loop:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p, %rd4, %rd1;
  @%p bra loop;
  ret;
}
)";
