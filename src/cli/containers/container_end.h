// The end of a container whose engine's command has ended before it: nobody else ends it, as the
// engine, not the command, is its parent.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

namespace gpurota::cli {

class ContainerEnd {
 public:
  // `engine` is the engine and the options before its subcommand. `id_file`, in which it writes the
  // container's id, is the user's, or empty: then it is in a folder that is made for it.
  static Result<std::unique_ptr<ContainerEnd>> make(std::vector<std::string> engine,
                                                    std::string id_file);
  ~ContainerEnd();  // removes the folder
  ContainerEnd(const ContainerEnd&) = delete;
  ContainerEnd& operator=(const ContainerEnd&) = delete;

  // For --cidfile; not there until the engine has made the container.
  const std::string& id_file() const { return id_file_; }
  // Has the engine kill it, if there is one. Nothing where the user's file was there before: the
  // engine makes no container then, and the id in it is another's. Waits for that, some seconds at
  // most.
  void kill() const;

 private:
  ContainerEnd(std::vector<std::string> engine, std::string id_file, std::string folder)
      : engine_(std::move(engine)), id_file_(std::move(id_file)), folder_(std::move(folder)) {}

  std::vector<std::string> engine_;
  std::string id_file_;
  std::string folder_;   // empty: the file is the user's
  bool is_old_ = false;  // it was there before
};

}  // namespace gpurota::cli
