// The fields of the methods that every Varlink service has; see fields.h.
#pragma once

#include "proto/like.h"
#include "proto/methods.h"

namespace gpurota::proto {

template <class V, Like<ServiceInfo::Reply> X>
void visit(V&& v, X& x) {
  v("vendor", x.vendor);
  v("product", x.product);
  v("version", x.version);
  v("url", x.url);
  v("interfaces", x.interfaces);
}

template <class V, Like<InterfaceDescription> X>
void visit(V&& v, X& x) {
  v("interface", x.interface);
}

template <class V, Like<InterfaceDescription::Reply> X>
void visit(V&& v, X& x) {
  v("description", x.description);
}

}  // namespace gpurota::proto
