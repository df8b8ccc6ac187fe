// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/hint_finder.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "pkg/sys/thread.h"
#include "pkg/topology/device_locality.h"

namespace resmgr {
namespace {

// The location of each path, as far as sysfs has it; at most kMaxHints.
std::vector<LocalityHint> FindHints(const DeviceLocality& locality,
                                    const std::vector<HintPath>& paths) {
  std::vector<LocalityHint> hints;
  for (const HintPath& path : paths) {
    const std::optional<Locality> place =
        path.device ? locality.OfDevice(path.path) : locality.OfHostPath(path.path);
    if (!place) continue;
    hints.push_back({.source = path.source, .cpus = place->cpus, .nodes = place->nodes});
    if (hints.size() == kMaxHints) break;
  }
  return hints;
}

}  // namespace

struct HintFinder::Job {
  std::function<Hints()> find;
  EventLoop::Clock::time_point started;  // when a thread took the job
  std::weak_ptr<Question::Ear> ear;
};

// Shared by the loop and the threads.
struct HintFinder::Shared {
  void Run();
  void Withdraw(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(mutex);
    std::erase(waiting, job);
  }

  std::mutex mutex;
  std::condition_variable wake;
  EventLoop* loop = nullptr;  // nullptr: the finder was destroyed
  std::deque<std::shared_ptr<Job>> waiting;
  std::vector<std::shared_ptr<Job>> running;
  size_t threads = 0;
};

void HintFinder::Shared::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return loop == nullptr || !waiting.empty(); });
    if (loop == nullptr) return;
    const std::shared_ptr<Job> job = std::move(waiting.front());
    waiting.pop_front();
    job->started = EventLoop::Clock::now();
    running.push_back(job);
    lock.unlock();
    Hints hints = job->find();
    lock.lock();
    std::erase(running, job);
    if (loop == nullptr) return;
    loop->Post([ear = job->ear, hints = std::move(hints)]() mutable {
      Question::Tell(ear, std::move(hints));
    });
  }
}

HintFinder::HintFinder(EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)), shared_(std::make_shared<Shared>()) {
  shared_->loop = &loop;
}

HintFinder::~HintFinder() {
  const std::lock_guard lock(shared_->mutex);
  shared_->loop = nullptr;
  shared_->waiting.clear();
  shared_->wake.notify_all();
}

std::unique_ptr<HintFinder::Question> HintFinder::Ask(std::vector<HintPath> paths,
                                                      std::function<void(Hints)> answer) {
  return Ask([find = options_.find, paths = std::move(paths)] { return find(paths); },
             std::move(answer));
}

std::unique_ptr<HintFinder::Question> HintFinder::Ask(std::function<Hints()> find,
                                                      std::function<void(Hints)> answer) {
  const auto job = std::make_shared<Job>();
  job->find = std::move(find);
  std::unique_ptr<Question> question(new Question(shared_, job, std::move(answer)));
  job->ear = question->ear_;

  const std::lock_guard lock(shared_->mutex);
  Shared& shared = *shared_;
  const auto late = EventLoop::Clock::now() - options_.deadline;
  const auto hangs = [late](const auto& busy) { return busy->started < late; };
  const bool full = shared.threads == options_.most_threads;
  if (full && static_cast<size_t>(std::count_if(shared.running.begin(), shared.running.end(),
                                                hangs)) == shared.threads) {
    return nullptr;
  }
  if (shared.waiting.size() >= options_.most_waiting) return nullptr;
  if (!full && shared.running.size() + shared.waiting.size() >= shared.threads) {
    try {
      StartThread("hints", [kept = shared_] { kept->Run(); }).detach();
      ++shared.threads;
    } catch (const std::system_error&) {
      if (shared.threads == 0) return nullptr;
    }
  }
  shared.waiting.push_back(job);
  shared.wake.notify_one();
  question->ear_->deadline =
      loop_.After(options_.deadline, [kept = shared_, weak = std::weak_ptr(job)] {
        const std::shared_ptr<Job> late_job = weak.lock();
        if (late_job == nullptr) return;
        kept->Withdraw(late_job);
        Question::Tell(late_job->ear, {});
      });
  return question;
}

HintFinder::Hints HintFinder::FindOnThisMachine(const std::vector<HintPath>& paths) {
  return FindHints(DeviceLocality(DeviceLocality::Options()), paths);
}

HintFinder::Question::Question(std::shared_ptr<Shared> shared, std::shared_ptr<Job> job,
                               std::function<void(Hints)> answer)
    : shared_(std::move(shared)),
      job_(std::move(job)),
      ear_(std::make_shared<Ear>(Ear{.answer = std::move(answer), .deadline = nullptr})) {}

HintFinder::Question::~Question() {
  shared_->Withdraw(job_);
}

void HintFinder::Question::Tell(const std::weak_ptr<Ear>& weak, Hints hints) {
  const std::shared_ptr<Ear> ear = weak.lock();
  if (ear == nullptr || !ear->answer) return;
  ear->deadline.reset();
  std::exchange(ear->answer, nullptr)(std::move(hints));
}

std::vector<HintPath> HintPaths(const ContainerDetails& details) {
  std::vector<HintPath> hints;
  for (size_t i = 0; i < details.devices.size() && i < kMaxHints; ++i) {
    const std::string& path = details.devices[i].host_path;
    hints.push_back({.device = true, .source = fmt::format("device {}", path), .path = path});
  }
  for (size_t i = 0; i < details.mounts.size() && i < kMaxHints; ++i) {
    const Mount& mount = details.mounts[i];
    if (!MountTellsLocality(mount.container_path, mount.host_path, mount.read_only)) continue;
    hints.push_back({.device = false,
                     .source = fmt::format("mount {}", mount.container_path),
                     .path = mount.host_path});
  }
  return hints;
}

}  // namespace resmgr
