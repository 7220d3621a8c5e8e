// The demo's device code: PTX for sm_60 and newer, which the driver compiles when loading it. The
// simulated driver knows these kernels by name. Any grid and block in x.
//
//   fill_u32(u32* data, u32 value, u64 count)           data[i] = value
//   add_u32(u32* data, u32 value, u64 count)            data[i] += value
//   checksum_u64(const u64* data, u64 words, u64* sum)  *sum += Σ (data[i] + i) · (2 i + 1)
#pragma once

inline constexpr char kKernels[] = R"(
.version 6.0
.target sm_60
.address_size 64

.visible .entry fill_u32(.param .u64 data, .param .u32 value, .param .u64 count)
{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r4, [value];
  ld.param.u64 %rd2, [count];
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
  shl.b64 %rd5, %rd3, 2;
  add.u64 %rd5, %rd5, %rd1;
  st.global.u32 [%rd5], %r4;
  add.u64 %rd3, %rd3, %rd4;
  bra loop;
done:
  ret;
}

.visible .entry add_u32(.param .u64 data, .param .u32 value, .param .u64 count)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r4, [value];
  ld.param.u64 %rd2, [count];
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
  shl.b64 %rd5, %rd3, 2;
  add.u64 %rd5, %rd5, %rd1;
  ld.global.u32 %r5, [%rd5];
  add.u32 %r5, %r5, %r4;
  st.global.u32 [%rd5], %r5;
  add.u64 %rd3, %rd3, %rd4;
  bra loop;
done:
  ret;
}

.visible .entry checksum_u64(.param .u64 data, .param .u64 words, .param .u64 sum)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [data];
  ld.param.u64 %rd2, [words];
  ld.param.u64 %rd6, [sum];
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
  shl.b64 %rd5, %rd3, 3;
  add.u64 %rd5, %rd5, %rd1;
  ld.global.u64 %rd8, [%rd5];
  add.u64 %rd8, %rd8, %rd3;
  shl.b64 %rd9, %rd3, 1;
  add.u64 %rd9, %rd9, 1;
  mad.lo.u64 %rd7, %rd8, %rd9, %rd7;
  add.u64 %rd3, %rd3, %rd4;
  bra loop;
done:
  red.global.add.u64 [%rd6], %rd7;
  ret;
}
)";
