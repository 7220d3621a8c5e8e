// The calls about what was: events and the report. The other part of control_methods.cpp.
#include "daemon/control_methods.h"
#include "proto/codec.h"

namespace gpurota::daemon {

Outcome ControlMethods::on(const Caller&, const proto::Events&) {
  return {proto::reply_json<proto::Events>({}), {}, {}, {}, {}};
}

Outcome ControlMethods::on(const Caller&, const proto::Report&) {
  return {proto::reply_json<proto::Report>({}), {}, {}, {}, {}};
}

}  // namespace gpurota::daemon
