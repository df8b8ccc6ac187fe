// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cpufile/cpu_file_directory.h"
#include "pkg/log/log.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Writes the files of containers away from the event loop. While other work is under way, only the
// newest text of each container waits, so a disk that hangs costs memory for one text of each
// container. Loop's thread only.
class CpuFileWriter {
 public:
  struct Options {
    // If work takes longer, the disk counts as hanging.
    std::chrono::milliseconds patience{1'000};
    // Pause before another try to write a file.
    std::chrono::milliseconds retry{5'000};
  };
  using Done = std::function<void(const Status&)>;
  using Listed = std::function<void(const std::vector<std::string>&)>;

  // The loop must outlive this object; no callback is called after this object's end.
  CpuFileWriter(EventLoop& loop, std::string directory, Options options);

  // Makes the container's directory with this text in its file, and reports the outcome once,
  // unless a Remove cancels it before. A failed attempt is not repeated. DeadlineExceeded at once
  // while the disk hangs.
  void Make(const std::string& name, std::string text, Done done);
  // Writes this text into the container's file if it has one. Tries again until this succeeds or
  // the directory is gone.
  void Replace(const std::string& name, std::string text);
  // Removes the container's directory, if it exists.
  void Remove(const std::string& name);
  // Reports the names of the existing directories, once, when the disk has answered.
  void List(Listed listed);

  // Whether the work under way has taken longer than the patience.
  bool hangs() const;
  // Whether files could not be written, or the directories not listed. This is tried again.
  bool failing() const { return failure_told_ || hangs(); }
  // The number of files whose last text is not written yet.
  size_t behind() const { return behind_.size(); }

 private:
  struct Job {
    enum class Kind { kMake, kReplace, kRemove } kind;
    std::string text{};
    Done done{};
    Status outcome{};
  };
  using Jobs = std::map<std::string, Job>;
  // The work of one call off the loop, and its outcome.
  struct Batch {
    Jobs jobs;
    bool list = false;
    StatusOr<std::vector<std::string>> names;
  };

  void Schedule();
  void Begin();
  void Finish(Batch& batch);
  void FinishJob(const std::string& name, Job& job);
  void FinishList(const StatusOr<std::vector<std::string>>& names);
  void RetryLater();

  EventLoop& loop_;
  const Options options_;
  Logger& log_;
  Jobs waiting_;
  Listed listed_;                              // while a list is wanted
  bool list_now_ = false;                      // the next batch makes a list
  std::map<std::string, std::string> behind_;  // the text to write, by name
  bool failure_told_ = false;
  std::optional<EventLoop::Clock::time_point> begun_;  // when the work under way began
  bool scheduled_ = false;
  EventLoop::HandlePtr retry_;
  // Shared with the work, which may outlive this object.
  const std::shared_ptr<CpuFileDirectory> directory_;
  Lifetime lifetime_;
  OffLoop off_loop_;
};

}  // namespace resmgr
