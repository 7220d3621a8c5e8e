# Headers that nearly every file includes, parsed once. Half of the time of a small file goes into them.
#
# Only headers of other projects: they change with the machine. A file still includes what it uses: `./dev bench` and `./dev cov`
# compile each by itself, without these.
option(GPUROTA_PRECOMPILED "Parse the headers that nearly every file includes once" OFF)

set(GPUROTA_COMMON_HEADERS <algorithm> <array> <chrono> <functional> <map> <memory> <optional> <set> <string> <vector>
  <fmt/format.h> <tl/expected.hpp>)

# gpurota_precompile(TARGET KIND): KIND is library, busy (a library as BUSY of gpurota_module) or test. What a target is compiled with must be what the headers were compiled
# with, so each kind has its own; a target that differs is refused by -Winvalid-pch.
function(gpurota_precompile target kind)
  if(GPUROTA_PRECOMPILED)
    gpurota_make_precompiled(${kind})
    target_precompile_headers(${target} REUSE_FROM gpurota_precompiled_${kind})
    # g++ 12 no longer sees that code of the standard library is not ours, and its guesses about it are wrong.
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread
      -Wno-array-bounds -Wno-restrict)
  endif()
endfunction()

# The target that has them for a kind; it is made at its first use. A program's code is position-independent in another way than a library's.
function(gpurota_make_precompiled kind)
  set(target gpurota_precompiled_${kind})
  if(TARGET ${target})
    return()
  endif()
  set(headers ${GPUROTA_COMMON_HEADERS})
  set(libraries gpurota_flags fmt::fmt Threads::Threads)
  if(kind STREQUAL "test")
    add_executable(${target} ${CMAKE_SOURCE_DIR}/cmake/precompiled_test.cpp)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    list(APPEND libraries GTest::gmock)
  else()
    add_library(${target} STATIC ${CMAKE_SOURCE_DIR}/cmake/precompiled_library.cpp)
  endif()
  target_link_libraries(${target} PRIVATE ${libraries})
  if(NOT kind STREQUAL "busy")
    gpurota_unoptimised(${target})
  endif()
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
