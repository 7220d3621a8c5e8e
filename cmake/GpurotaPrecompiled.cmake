# Headers that nearly every file includes, parsed once. Half of the time of a small file goes into them.
#
# Only headers of other projects: they change with the machine. A file still includes what it uses: `./dev bench`, `./dev fuzz` and
# `./dev cov` compile each by itself, without these.
option(GPUROTA_PRECOMPILED "Parse the headers that nearly every file includes once" OFF)

set(GPUROTA_COMMON_HEADERS <algorithm> <array> <chrono> <functional> <map> <memory> <optional> <set> <string> <vector>
  <fmt/format.h> <tl/expected.hpp>)

# gpurota_precompile(TARGET KIND): KIND is library, busy (a library as BUSY of gpurota_module) or test. What a target is compiled with must be what the headers were compiled
# with, so each kind has its own; a target that differs is refused by -Winvalid-pch.
function(gpurota_precompile target kind)
  if(GPUROTA_PRECOMPILED)
    cmake_language(CALL gpurota_precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM gpurota_precompiled_${kind})
    # g++ 12 no longer sees that code of the standard library is not ours, and its guesses about it are wrong.
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread
      -Wno-array-bounds -Wno-restrict)
  endif()
endfunction()

function(gpurota_precompiled_library)
  if(NOT TARGET gpurota_precompiled_library)
    add_library(gpurota_precompiled_library STATIC ${CMAKE_SOURCE_DIR}/cmake/precompiled_library.cpp)
    target_link_libraries(gpurota_precompiled_library PRIVATE gpurota_flags fmt::fmt Threads::Threads)
    gpurota_unoptimised(gpurota_precompiled_library)
    target_precompile_headers(gpurota_precompiled_library PRIVATE ${GPUROTA_COMMON_HEADERS})
  endif()
endfunction()

function(gpurota_precompiled_busy)
  if(NOT TARGET gpurota_precompiled_busy)
    add_library(gpurota_precompiled_busy STATIC ${CMAKE_SOURCE_DIR}/cmake/precompiled_library.cpp)
    target_link_libraries(gpurota_precompiled_busy PRIVATE gpurota_flags fmt::fmt Threads::Threads)
    target_precompile_headers(gpurota_precompiled_busy PRIVATE ${GPUROTA_COMMON_HEADERS})
  endif()
endfunction()

# A program's code is position-independent in another way than a library's.
function(gpurota_precompiled_test)
  if(NOT TARGET gpurota_precompiled_test)
    add_executable(gpurota_precompiled_test ${CMAKE_SOURCE_DIR}/cmake/precompiled_test.cpp)
    target_link_libraries(gpurota_precompiled_test PRIVATE gpurota_flags fmt::fmt Threads::Threads GTest::gmock)
    gpurota_unoptimised(gpurota_precompiled_test)
    target_precompile_headers(gpurota_precompiled_test PRIVATE ${GPUROTA_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endfunction()
