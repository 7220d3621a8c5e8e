// toml++, as gpurota uses it: it returns errors, and what somebody has written never ends the program.
#pragma once

#define TOML_EXCEPTIONS 0
#include <toml++/impl/preprocessor.h>

// toml++ 3.3 asserts that a key begins as one may, also of "[.a]", before its parser answers with an error;
// in other builds it tells some compilers that nothing else can come. Its parser is to decide, in every build.
#undef TOML_ASSERT
#undef TOML_ASSUME
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_ASSUME(...) static_assert(true)
#define TOML_ASSERT_ASSUME(condition) static_assert(true)

#include <toml++/toml.h>
