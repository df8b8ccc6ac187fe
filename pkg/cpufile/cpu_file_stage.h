// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pkg/base/status.h"
#include "pkg/model/container_details.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/stage.h"

namespace resmgr {

// Adds a mount to creations of containers that get a CPU file, once the file exists. If the file
// cannot be made in time, the creation goes on without the mount. Loop's thread only.
class CpuFileStage final : public Stage {
 public:
  // Makes and removes the files.
  class Files {
   public:
    // The name of the file's directory; empty if this container gets no file.
    virtual std::string NameFor(const CreateRequest& request) = 0;
    virtual Mount MountOf(const std::string& name) const = 0;
    // Makes the container's file. `done` reports, once, at once or later, whether the file exists.
    // It is not called after Abandon.
    virtual void Make(const std::string& name, std::function<void(const Status&)> done) = 0;
    // Called if the container is not created.
    virtual void Abandon(const std::string& name) = 0;
    // Notes that the container is created without a file, because the file's mount would conflict
    // with one of its own mounts.
    virtual void NoteNone(const std::string& name, std::string why) = 0;

   protected:
    ~Files() = default;
  };

  // `files` outlives the calls of the stage.
  explicit CpuFileStage(Files& files);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

 private:
  Files& files_;
};

}  // namespace resmgr
