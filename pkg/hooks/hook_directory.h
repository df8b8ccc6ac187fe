// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::hooks {

// A file of the hook directory with its present text.
struct HookFileText {
  std::string name;            // "koordlet.json"
  StatusOr<std::string> text;  // or the reason why it cannot be read
  // The file is not used, since too many files precede it: only its failure policy counts.
  bool beyond_limit = false;
};

// Limits of the number of files: used ones, and all that are read.
inline constexpr size_t kMostHookFiles = 64;
inline constexpr size_t kMostHookFilesRead = 256;

// The files whose names end in ".json" and do not begin with a dot, in the order of their names: at
// most kMostHookFilesRead of them, followed by one without text if there are more. Symbolic links
// are followed, as ConfigMaps need. An entry that is not a regular file, or is longer than
// kLongestHookFile, has a status instead of its text; a file that is gone when it is opened is left
// out. An absent directory has no files. Blocks on the disk, but never waits for a writer of a
// FIFO.
StatusOr<std::vector<HookFileText>> ReadHookDirectory(const std::string& path);

// Reads the hook directory at once, after each change that inotify reports, and every few seconds
// for changes that inotify misses: a directory that is created or mounted, and a link's target. The
// disk is touched on a thread of its own, by one read at a time. A read that hangs or fails changes
// nothing; each reason is logged once, until a read succeeds in time. Loop's thread only.
class HookDirectoryWatch {
 public:
  using Files = std::vector<HookFileText>;

  struct Options {
    std::string directory;
    // Time from a change until it is read, so that many changes cause one read.
    std::chrono::milliseconds settle{50};
    std::chrono::milliseconds poll{2'000};
    std::chrono::milliseconds deadline{5'000};  // after which a read counts as hanging
    // Called on the reader's thread; may outlive the watch.
    std::function<StatusOr<Files>(const std::string& directory)> read = ReadHookDirectory;
  };

  // `update` runs after each successful read, never inside the constructor and not after the end of
  // this object, which it must not destroy. The loop must outlive this object.
  HookDirectoryWatch(EventLoop& loop, Options options, std::function<void(const Files&)> update);
  ~HookDirectoryWatch() = default;
  HookDirectoryWatch(const HookDirectoryWatch&) = delete;
  HookDirectoryWatch& operator=(const HookDirectoryWatch&) = delete;

  // True once a read has succeeded: until then the hook servers are unknown.
  bool known() const { return known_; }
  // The reasons why the directory cannot be read now; empty if it can.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  struct Found;
  class Inotify;

  static Found Look(const Options& options, const Inotify& inotify, int watch,
                    const std::vector<std::string>& names);

  void OnChange();
  void OnSettled();
  void Read();
  void OnRead(Found found);
  void TellWatched(int error);
  void Complain(const std::string& why);

  EventLoop& loop_;
  Logger& log_;
  const Options options_;
  const std::function<void(const Files&)> update_;
  const std::shared_ptr<Inotify> inotify_;  // shared with the thread, which may outlive this object
  int watch_ = -1;                          // inotify's number of the directory
  std::vector<std::string> names_;          // of the last successful read
  bool known_ = false;
  bool reading_ = false;
  bool again_ = false;  // a change came after the present read began
  bool late_ = false;   // the present read has exceeded its deadline
  int watch_error_ = 0;
  std::vector<std::string> complaints_;  // logged since the last read that succeeded in time
  EventLoop::HandlePtr events_;
  EventLoop::HandlePtr settled_;
  EventLoop::HandlePtr deadline_;
  EventLoop::HandlePtr poll_;
  OffLoop reader_;  // destroyed first
};

}  // namespace resmgr::hooks
