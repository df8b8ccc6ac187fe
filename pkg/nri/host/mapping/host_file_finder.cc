// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/host_file_finder.h"

#include <random>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace resmgr::nri {

namespace {

std::string OwnPrefix() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}-", random(), random());
}

}  // namespace

HostFileFinder::HostFileFinder(EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)), prefix_(OwnPrefix()) {}

void HostFileFinder::RemoveLeft() {
  OffLoop* const thread = FreeThread();
  if (thread == nullptr) return;
  (void)thread->Run(
      [directory = options_.profile_directory, prefix = prefix_]() -> EventLoop::Task {
        RemoveProfilesBut(directory, prefix);
        return nullptr;
      });
}

OffLoop* HostFileFinder::FreeThread() {
  for (const auto& thread : threads_)
    if (!thread->busy()) return thread.get();
  if (threads_.size() == options_.most_at_once) return nullptr;
  return threads_
      .emplace_back(std::make_unique<OffLoop>(loop_, "nri-files", std::chrono::milliseconds(0)))
      .get();
}

void HostFileFinder::Ask(HostFiles files, std::string_view container, Done done) {
  const uint64_t number = ++last_;
  Question& question = questions_[number];
  question.done = std::move(done);
  OffLoop* const thread = FreeThread();
  Status started =
      Unavailable("all {} threads that look at the node's files are busy", threads_.size());
  if (thread != nullptr) {
    std::string path = fmt::format("{}/{}{}.json", options_.profile_directory, prefix_, container);
    // The result is dropped if the finder has ended, so `this` is valid in the returned task.
    started = thread->Run([this, number, files = std::move(files), path = std::move(path),
                           find = options_.find]() -> EventLoop::Task {
      return [this, number, found = find(files, path)] { Answer(number, found); };
    });
  }
  const auto wait = started.ok() ? options_.deadline : std::chrono::milliseconds(0);
  if (started.ok()) started = DeadlineExceeded("the node's files cannot be looked at");
  question.deadline =
      loop_.After(wait, [this, number, why = std::move(started)] { Answer(number, why); });
}

void HostFileFinder::Answer(uint64_t number, StatusOr<FoundFiles> found) {
  const auto question = questions_.extract(number);
  // The creation has ended meanwhile, so the profile that was written for it is removed here.
  if (question.empty() && found.ok()) Forget(*found);
  // In the next turn of the loop, when the thread that has answered is free.
  RemoveForgottenSoon();
  if (!question.empty()) question.mapped().done(std::move(found));
}

void HostFileFinder::Forget(const FoundFiles& found) {
  if (found.seccomp_profile.empty()) return;
  forgotten_.push_back(found.seccomp_profile);
  RemoveForgotten();
}

void HostFileFinder::RemoveForgottenSoon() {
  if (forgotten_.empty()) return;
  soon_ = loop_.After(std::chrono::milliseconds(0), [this] { RemoveForgotten(); });
}

void HostFileFinder::RemoveForgotten() {
  OffLoop* const thread = FreeThread();
  if (thread == nullptr) return;
  const Status begun = thread->Run([this, paths = forgotten_]() -> EventLoop::Task {
    for (const std::string& path : paths)
      ::unlink(path.c_str());
    return [this] { RemoveForgottenSoon(); };
  });
  // If no thread can be started, they are removed after the next answer.
  if (begun.ok()) forgotten_.clear();
}

}  // namespace resmgr::nri
