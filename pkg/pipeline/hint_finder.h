// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/model/container_details.h"
#include "pkg/model/pod.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// A path of the host that may show where a container's data are.
struct HintPath {
  bool device = false;  // a device node; else a directory or file of a volume
  std::string source;   // "device /dev/nvme0n1", "mount /data" (the path in the container)
  std::string path;     // of the host
};

// The devices and the data volumes of a container, at most kMaxHints of each kind. Accesses no
// file.
inline constexpr size_t kMaxHints = 64;
std::vector<HintPath> HintPaths(const ContainerDetails& details);

// Finds locality hints on threads of its own: a file system or another program may be dead, and a
// thread that asks it may never return. A container whose hints are not found before the deadline
// is placed without them. The number of threads is bounded: while each of them is over its
// deadline, nothing is asked. Loop's thread only.
class HintFinder {
 public:
  using Hints = std::vector<LocalityHint>;
  // Called on the finder's threads, concurrently; may outlive the finder.
  using Find = std::function<Hints(const std::vector<HintPath>& paths)>;
  struct Options {
    Find find = FindOnThisMachine;
    std::chrono::milliseconds deadline{200};
    size_t most_threads = 4;
    size_t most_waiting = 256;
  };

  // The loop must outlive the finder.
  HintFinder(EventLoop& loop, Options options);
  // Leaves hanging threads behind.
  ~HintFinder();
  HintFinder(const HintFinder&) = delete;
  HintFinder& operator=(const HintFinder&) = delete;

  // Destroying it cancels the question. May outlive the finder, and gets no answer then.
  class Question;
  // `answer` is called once, later, on the loop; without hints if the deadline passes. It may
  // destroy the question. nullptr: no thread is available; go on without hints.
  std::unique_ptr<Question> Ask(std::vector<HintPath> paths, std::function<void(Hints)> answer);
  // The other Ask, but with the function that finds the hints; it runs on one of the threads and
  // may outlive the finder.
  std::unique_ptr<Question> Ask(std::function<Hints()> find, std::function<void(Hints)> answer);

 private:
  struct Job;
  struct Shared;

  static Hints FindOnThisMachine(const std::vector<HintPath>& paths);

  EventLoop& loop_;
  const Options options_;
  // Shared with the threads, which may outlive this object.
  const std::shared_ptr<Shared> shared_;
};

class HintFinder::Question {
 public:
  ~Question();
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

 private:
  friend class HintFinder;
  Question(std::shared_ptr<Shared> shared, std::shared_ptr<Job> job,
           std::function<void(Hints)> answer);

  // The loop's part of a question: gives the answer once.
  struct Ear {
    std::function<void(Hints)> answer;
    EventLoop::HandlePtr deadline;
  };
  static void Tell(const std::weak_ptr<Ear>& weak, Hints hints);

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Job> job_;
  const std::shared_ptr<Ear> ear_;
};

// A program that can name the memory nodes near to a container's devices, also if no path of the
// devices shows them. Loop's thread only.
class DeviceHints {
 public:
  virtual ~DeviceHints() = default;

  // As HintFinder::Ask: `answer` is called once, later, on the loop, without hints if none come in
  // time. nullptr: the program is not asked now.
  virtual std::unique_ptr<HintFinder::Question> Ask(
      const Pod& pod, const std::string& container,
      std::function<void(HintFinder::Hints)> answer) = 0;
};

}  // namespace resmgr
