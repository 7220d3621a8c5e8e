// Nothing of its own: the headers of GpurotaPrecompiled.cmake are compiled with it.
