// Has the address of another library's IFUNC in its data: the resolver runs while this is
// relocated.
extern "C" int early_resolved();

extern "C" int (*const early_used)() = early_resolved;
