// A protobuf message in a small file, as text: what the plugins store. Blocks as long as the disk
// does.
#pragma once

#include "base/result.h"

#include <string>

namespace google::protobuf {
class Message;  // its own header is heavy
}

namespace gpurota::kube {

// A missing file is no error: `message` stays empty. kIo: it cannot be read, or is not such a
// message.
Result<void> read_message(const std::string& file, google::protobuf::Message& message);
// The old text or the new one is there at any moment. For our user only: tokens are in it.
Result<void> store_message(const std::string& file, const google::protobuf::Message& message);
// The error for a file of state that makes no sense.
tl::unexpected<Error> damaged_file(const std::string& file, const std::string& why);

}  // namespace gpurota::kube
