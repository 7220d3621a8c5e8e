/* dlsym, dlvsym and dlmopen for AArch64; dlsym_x86_64.S explains them. */
        .text

        /* Save and restore the arguments and the return address around a call. */
        .macro SAVE
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        .endm
        .macro RESTORE
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        .endm

        .macro LOOKUP name, hook, real, first, function
        .p2align 4
        .globl  \name
        .hidden \name
        .type   \name, %function
\name:
        .cfi_startproc
        hint    #34                             /* bti c */
        adrp    x9, gpurota_relocated
        add     x9, x9, #:lo12:gpurota_relocated
        ldr     x10, [x9]
        cmp     x9, x10
        b.ne    4f
        adrp    x9, gpurota_mode
        ldrb    w9, [x9, #:lo12:gpurota_mode]
        cmp     w9, #1                          /* 1: no lease, do nothing at all */
        b.eq    1f
        .ifnc   \hook, gpurota_dlmopen_hook
        cbz     x1, 1f
        ldrb    w9, [x1]
        cmp     w9, #'n'
        b.eq    2f
        cmp     w9, #'c'
        b.ne    1f
        ldrb    w9, [x1, #1]
        cmp     w9, #'u'
        b.ne    1f
        ldrb    w9, [x1, #2]
3:      sub     w9, w9, #'A'
        cmp     w9, #25
        b.hi    1f
        .endif
        SAVE
        bl      \hook
        mov     x9, x0
        RESTORE
        cbz     x9, 1f
        mov     x0, x9
        ret
1:      adrp    x16, \real
        ldr     x16, [x16, #:lo12:\real]
        br      x16
        .ifnc   \hook, gpurota_dlmopen_hook
2:      ldrb    w9, [x1, #1]                    /* byte by byte: the name may end anywhere */
        cmp     w9, #'v'
        b.ne    1b
        ldrb    w9, [x1, #2]
        cmp     w9, #'m'
        b.ne    1b
        ldrb    w9, [x1, #3]
        cmp     w9, #'l'
        b.ne    1b
        ldrb    w9, [x1, #4]
        b       3b
        .endif
4:      SAVE
        .ifc    \hook, gpurota_dlmopen_hook
        mov     x0, xzr
        .else
        mov     x0, x1
        .endif
        adrp    x1, 5f
        add     x1, x1, #:lo12:5f
        bl      gpurota_early_lookup
        mov     x9, x0
        mov     x16, x1
        RESTORE
        cbnz    x9, 6f
        cbz     x16, 6f                         /* not found: return nullptr */
        br      x16
6:      mov     x0, x9
        ret
        .cfi_endproc
        .size   \name, .-\name
        .section .rodata
5:      .string "\function"
        .text

        .p2align 4
        .type   \first, %function
\first:
        .cfi_startproc
        hint    #36                             /* bti j: reached by br */
        SAVE
        bl      gpurota_find_real_dlsym
        RESTORE
        adrp    x16, \real
        ldr     x16, [x16, #:lo12:\real]
        br      x16
        .cfi_endproc
        .size   \first, .-\first

        .data
        .p2align 3
        .globl  \real
        .hidden \real
        .type   \real, %object
\real:  .xword  \first
        .size   \real, 8
        .text
        .endm

        LOOKUP  gpurota_dlsym, gpurota_dlsym_hook, gpurota_real_dlsym, first_dlsym, dlsym
        LOOKUP  gpurota_dlvsym, gpurota_dlvsym_hook, gpurota_real_dlvsym, first_dlvsym, dlvsym
        LOOKUP  gpurota_dlmopen, gpurota_dlmopen_hook, gpurota_real_dlmopen, first_dlmopen, dlmopen

        /* Holds its own address once relocated; before, what the linker left there. */
        .data
        .p2align 3
        .type   gpurota_relocated, %object
gpurota_relocated: .xword gpurota_relocated
        .size   gpurota_relocated, 8
        .text

        .macro EXPORT alias, target, name
        .globl  \alias
        .type   \alias, %function
        .set    \alias, \target
        .symver \alias, \name
        .endm
        EXPORT  gpurota_dlsym_2_17, gpurota_dlsym, dlsym@GLIBC_2.17
        EXPORT  gpurota_dlsym_2_34, gpurota_dlsym, dlsym@@GLIBC_2.34
        EXPORT  gpurota_dlvsym_2_17, gpurota_dlvsym, dlvsym@GLIBC_2.17
        EXPORT  gpurota_dlvsym_2_34, gpurota_dlvsym, dlvsym@@GLIBC_2.34
        EXPORT  gpurota_dlmopen_2_17, gpurota_dlmopen, dlmopen@GLIBC_2.17
        EXPORT  gpurota_dlmopen_2_34, gpurota_dlmopen, dlmopen@@GLIBC_2.34

        .section .note.GNU-stack,"",%progbits
