# Warnings, hardening and sanitizers, one home for all targets.
add_library(gpurota_flags INTERFACE)
target_include_directories(gpurota_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
target_compile_options(gpurota_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion
  -Wimplicit-fallthrough -Wno-missing-field-initializers $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Wold-style-cast>)
if(GPUROTA_WERROR)
  target_compile_options(gpurota_flags INTERFACE -Werror)
endif()
if(GPUROTA_SANITIZE)
  target_compile_options(gpurota_flags INTERFACE -fsanitize=${GPUROTA_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(gpurota_flags INTERFACE -fsanitize=${GPUROTA_SANITIZE})
else()
  target_compile_options(gpurota_flags INTERFACE -fstack-protector-strong
    $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  target_link_options(gpurota_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
# gpurota_unoptimised(TARGET): for code of which nobody waits for what it computes, but with sanitizers twice as long for its compiler:
# tests themselves, and most modules. Fuzzers try the more the faster all of it is.
function(gpurota_unoptimised target)
  if(GPUROTA_SANITIZE AND NOT GPUROTA_FUZZ)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
target_compile_definitions(gpurota_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
