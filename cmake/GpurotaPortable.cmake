# What a portable build links differently (GPUROTA_PORTABLE): the C++ library and fmt are in the programs.
foreach(name fmt fmt-header-only)
  add_library(fmt::${name} INTERFACE IMPORTED)
  target_compile_definitions(fmt::${name} INTERFACE FMT_HEADER_ONLY)
endforeach()
# libstdc++.a is of a system where threads are in the C library, so it does not ask whether they are there: nor may our code.
target_compile_definitions(gpurota_flags INTERFACE _GLIBCXX_GTHREAD_USE_WEAK=0)
# libsystemd and libacl need more than is there to build with. Which archives were taken is in the maps, for packaging/portable/sbom.py.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/maps)
string(CONCAT CMAKE_CXX_STANDARD_LIBRARIES "-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,--allow-shlib-undefined "
  "-Wl,-Map=${CMAKE_BINARY_DIR}/maps -Wl,--as-needed -lm -ldl -lpthread")
