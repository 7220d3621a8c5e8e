# gpurota_module(NAME SOURCES a.cpp… [DEPS gpurota_base…] [TESTS a_test.cpp…] [TEST_DEPS …])
#
# One folder is one static library gpurota_NAME, and its *_test.cpp files are one test binary
# NAME_test, known to ctest by that name.
function(gpurota_module name)
  cmake_parse_arguments(M "" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  if(M_SOURCES)
    add_library(gpurota_${name} STATIC ${M_SOURCES})
    target_link_libraries(gpurota_${name} PUBLIC gpurota_flags ${M_DEPS})
  else()
    add_library(gpurota_${name} INTERFACE)
    target_link_libraries(gpurota_${name} INTERFACE gpurota_flags ${M_DEPS})
  endif()
  if(M_TESTS AND GPUROTA_TESTS)
    gpurota_test(${name}_test SOURCES ${M_TESTS} DEPS gpurota_${name} ${M_TEST_DEPS})
  endif()
endfunction()

# gpurota_test(NAME SOURCES … DEPS …): a gtest binary, run whole by ctest.
function(gpurota_test name)
  cmake_parse_arguments(T "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE gpurota_flags ${T_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
