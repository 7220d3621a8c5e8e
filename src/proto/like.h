// A T, const or not: what the visit functions of fields.h take.
#pragma once

#include <concepts>
#include <type_traits>

namespace gpurota::proto {

template <class X, class T>
concept Like = std::same_as<std::remove_const_t<X>, T>;

}  // namespace gpurota::proto
