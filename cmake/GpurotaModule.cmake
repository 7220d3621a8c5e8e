# What `./dev asan` and `./dev tsan` build: tests by themselves, and the programs that these run.
add_custom_target(tested)

# gpurota_module(NAME SOURCES a.cpp… [DEPS gpurota_base…] [TESTS a_test.cpp…] [TEST_DEPS …] [PLAIN] [THREADS] [BUSY])
#
# One folder is one static library gpurota_NAME, and its *_test.cpp files are one test binary
# NAME_test, known to ctest by that name. PLAIN and THREADS: as of gpurota_test. BUSY: tests let it compute for long, so that it is
# optimised with sanitizers too.
function(gpurota_module name)
  cmake_parse_arguments(M "PLAIN;THREADS;BUSY" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  if(M_SOURCES)
    add_library(gpurota_${name} STATIC ${M_SOURCES})
    target_link_libraries(gpurota_${name} PUBLIC gpurota_flags ${M_DEPS})
    # Not for tests: they follow pointers that an expectation has just checked.
    target_compile_options(gpurota_${name} PRIVATE -Wnull-dereference)
    set(kind busy)
    if(NOT M_BUSY)
      set(kind library)
      gpurota_unoptimised(gpurota_${name})
    endif()
    if(NOT M_PLAIN)
      gpurota_precompile(gpurota_${name} ${kind})
    endif()
  else()
    add_library(gpurota_${name} INTERFACE)
    target_link_libraries(gpurota_${name} INTERFACE gpurota_flags ${M_DEPS})
  endif()
  if(M_TESTS AND GPUROTA_TESTS)
    set(options)
    foreach(option PLAIN THREADS)
      if(M_${option})
        list(APPEND options ${option})
      endif()
    endforeach()
    gpurota_test(${name}_test SOURCES ${M_TESTS} DEPS gpurota_${name} ${M_TEST_DEPS} ${options})
  endif()
endfunction()

# gpurota_test(NAME SOURCES … DEPS … [LABELS …] [TIMEOUT seconds] [PLAIN] [THREADS]): a gtest binary, run whole by
# ctest. PLAIN: without precompiled headers, as its sources are compiled in their own way. THREADS: it has more than one, so that it is of
# interest to the thread sanitizer, which has no target of that name otherwise; a test that does not say so cannot start any. The label is
# "unit" unless told; "unsanitized" cannot run under sanitizers. Its part, GPUROTA_PART, is a label too (tools/check_labels.py). Its results
# go where tools/list_skips.py looks for skipped cases.
function(gpurota_test name)
  cmake_parse_arguments(T "PLAIN;THREADS" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 600)
  endif()
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  if(GPUROTA_SANITIZE STREQUAL "thread" AND NOT T_THREADS)
    return()
  endif()
  add_executable(${name} ${T_SOURCES})
  add_dependencies(tested ${name})
  if(NOT T_THREADS)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src/testing/one_thread.cpp)
  endif()
  # Fixtures of the same name in two files are not two of one thing.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${name} PRIVATE gpurota_flags ${T_DEPS} GTest::gmock GTest::gtest_main)
  if(NOT T_PLAIN)
    gpurota_unoptimised(${name})
    gpurota_precompile(${name} test)
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS};${GPUROTA_PART}"
    ENVIRONMENT_MODIFICATION "GTEST_OUTPUT=set:xml:${CMAKE_BINARY_DIR}/test-results/${name}.xml")
endfunction()

# gpurota_fuzzer(NAME SOURCES … DEPS …): LLVMFuzzerTestOneInput. With GPUROTA_FUZZ it is the fuzzer
# NAME_fuzzer; else a test NAME_corpus that gives it every file of tests/fuzz/corpus/NAME_fuzzer, cut
# short and with bits flipped too.
function(gpurota_fuzzer name)
  cmake_parse_arguments(F "" "" "SOURCES;DEPS" ${ARGN})
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}_fuzzer)
  if(GPUROTA_FUZZ)
    add_executable(${name}_fuzzer ${F_SOURCES})
    target_link_libraries(${name}_fuzzer PRIVATE gpurota_flags ${F_DEPS})
    target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
  elseif(NOT GPUROTA_SANITIZE STREQUAL "thread")  # they have one
    add_executable(${name}_corpus ${F_SOURCES} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    target_link_libraries(${name}_corpus PRIVATE gpurota_flags ${F_DEPS})
    add_dependencies(tested ${name}_corpus)
    add_test(NAME ${name}_corpus COMMAND ${name}_corpus ${corpus})
    set_tests_properties(${name}_corpus PROPERTIES TIMEOUT 300 LABELS "unit;${GPUROTA_PART}")
  endif()
endfunction()
