// Stores a protobuf message in a small text file: the plugins' state. Blocks as long as the disk
// does.
#pragma once

#include "base/result.h"

#include <string>

namespace google::protobuf {
class Message;  // its own header is large
}

namespace gpurota::kube {

// A missing file is not an error: `message` stays empty. kIo: the file cannot be read, or is not
// such a message.
Result<void> read_message(const std::string& file, google::protobuf::Message& message);
// At any moment either the old or the new text is there. Readable by our user only, because it has
// tokens.
Result<void> store_message(const std::string& file, const google::protobuf::Message& message);
// The error for a state file with invalid content.
tl::unexpected<Error> damaged_file(const std::string& file, const std::string& why);

}  // namespace gpurota::kube
