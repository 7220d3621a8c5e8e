// The answer of one of several machines, for views that show them together. Pure.
#pragma once

#include <string>

namespace gpurota::cli {

template <class Method>
struct OfHost {
  std::string host;                               // empty: a single machine, which is not named
  const typename Method::Reply* reply = nullptr;  // outlives this
};

}  // namespace gpurota::cli
