// The end of a container whose engine's command was killed: nobody else ends it, as the engine, not the command, is its parent.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

namespace gpurota::cli {

class ContainerEnd {
 public:
  // `engine` is the engine and the options before its subcommand. Makes a folder for the file in which it writes the container's id.
  static Result<std::unique_ptr<ContainerEnd>> make(std::vector<std::string> engine);
  ~ContainerEnd();  // removes the folder
  ContainerEnd(const ContainerEnd&) = delete;
  ContainerEnd& operator=(const ContainerEnd&) = delete;

  // For --cidfile; not there until the engine has made the container.
  std::string id_file() const { return folder_ + "/id"; }
  // Has the engine kill it, if there is one. Waits for that, some seconds at most.
  void kill() const;

 private:
  ContainerEnd(std::vector<std::string> engine, std::string folder)
      : engine_(std::move(engine)), folder_(std::move(folder)) {}

  std::vector<std::string> engine_;
  std::string folder_;
};

}  // namespace gpurota::cli
