/* dlsym, dlvsym and dlmopen for x86-64. Each stub saves the arguments and asks for a hook. If there
 * is none, the stub *jumps* to the real function with the caller's return address still on the
 * stack: RTLD_NEXT and RTLD_DEFAULT are then resolved for the true caller, which a C wrapper cannot
 * promise. Names that do not begin with cu[A-Z] or nvml[A-Z] leave after a few compares, without a
 * call, a lock or an allocation.
 *
 * Another library's IFUNC resolver may call a stub before this library is relocated. No word that
 * holds an address is right then, and nothing outside of this file but gpurota_early_lookup may be
 * called. gpurota_relocated tells whether the library is relocated.
 */
        .text

        /* Save and restore the arguments around a call; the stack is aligned between the two. */
        .macro SAVE
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        .endm
        .macro RESTORE
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        .endm

        .macro LOOKUP name, hook, real, first, function
        .p2align 4
        .globl  \name
        .hidden \name
        .type   \name, @function
\name:
        .cfi_startproc
        endbr64
        leaq    gpurota_relocated(%rip), %rax
        cmpq    %rax, gpurota_relocated(%rip)
        jne     4f
        cmpb    $1, gpurota_mode(%rip)          /* 1: no lease, do nothing at all */
        je      1f
        .ifnc   \hook, gpurota_dlmopen_hook    /* dlmopen is rare: no name is compared */
        testq   %rsi, %rsi
        je      1f
        cmpb    $'n', (%rsi)
        je      2f
        cmpb    $'c', (%rsi)
        jne     1f
        cmpb    $'u', 1(%rsi)
        jne     1f
        movzbl  2(%rsi), %eax
3:      subl    $'A', %eax
        cmpl    $25, %eax
        ja      1f
        .endif
        SAVE
        call    \hook
        RESTORE
        testq   %rax, %rax
        je      1f
        ret
1:      jmp     *\real(%rip)
        .ifnc   \hook, gpurota_dlmopen_hook
2:      cmpb    $'v', 1(%rsi)                   /* byte by byte: the name may end anywhere */
        jne     1b
        cmpb    $'m', 2(%rsi)
        jne     1b
        cmpb    $'l', 3(%rsi)
        jne     1b
        movzbl  4(%rsi), %eax
        jmp     3b
        .endif
4:      SAVE
        .ifc    \hook, gpurota_dlmopen_hook
        xorl    %edi, %edi
        .else
        movq    %rsi, %rdi
        .endif
        leaq    5f(%rip), %rsi
        call    gpurota_early_lookup
        movq    %rax, %r10
        movq    %rdx, %r11
        RESTORE
        movq    %r10, %rax
        testq   %rax, %rax
        jne     6f
        testq   %r11, %r11
        je      6f                              /* not found: return nullptr */
        jmp     *%r11
6:      ret
        .cfi_endproc
        .size   \name, .-\name
        .section .rodata
5:      .string "\function"
        .text

        /* \real points here until the real function has been looked up. */
        .p2align 4
        .type   \first, @function
\first:
        .cfi_startproc
        endbr64
        SAVE
        call    gpurota_find_real_dlsym
        RESTORE
        jmp     *\real(%rip)
        .cfi_endproc
        .size   \first, .-\first

        .data
        .p2align 3
        .globl  \real
        .hidden \real
        .type   \real, @object
\real:  .quad   \first
        .size   \real, 8
        .text
        .endm

        LOOKUP  gpurota_dlsym, gpurota_dlsym_hook, gpurota_real_dlsym, first_dlsym, dlsym
        LOOKUP  gpurota_dlvsym, gpurota_dlvsym_hook, gpurota_real_dlvsym, first_dlvsym, dlvsym
        LOOKUP  gpurota_dlmopen, gpurota_dlmopen_hook, gpurota_real_dlmopen, first_dlmopen, dlmopen

        /* Holds its own address once relocated; before, what the linker left there. */
        .data
        .p2align 3
        .type   gpurota_relocated, @object
gpurota_relocated: .quad gpurota_relocated
        .size   gpurota_relocated, 8
        .text

        /* The exported names, in the versions that programs are linked to. */
        .macro EXPORT alias, target, name
        .globl  \alias
        .type   \alias, @function
        .set    \alias, \target
        .symver \alias, \name
        .endm
        EXPORT  gpurota_dlsym_2_2_5, gpurota_dlsym, dlsym@GLIBC_2.2.5
        EXPORT  gpurota_dlsym_2_34, gpurota_dlsym, dlsym@@GLIBC_2.34
        EXPORT  gpurota_dlvsym_2_2_5, gpurota_dlvsym, dlvsym@GLIBC_2.2.5
        EXPORT  gpurota_dlvsym_2_34, gpurota_dlvsym, dlvsym@@GLIBC_2.34
        EXPORT  gpurota_dlmopen_2_3_4, gpurota_dlmopen, dlmopen@GLIBC_2.3.4
        EXPORT  gpurota_dlmopen_2_34, gpurota_dlmopen, dlmopen@@GLIBC_2.34

        .section .note.GNU-stack,"",@progbits
