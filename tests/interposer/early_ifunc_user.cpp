// Has the address of another library's IFUNC in its data, so the resolver runs while this library
// is relocated.
extern "C" int early_resolved();

extern "C" int (*const early_used)() = early_resolved;
