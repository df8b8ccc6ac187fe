// SPDX-License-Identifier: Apache-2.0
#include "pkg/kubelet/pod_resources.h"

#include <atomic>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr {
namespace {

// The end of one question, written by the thread that asks.
struct Told {
  Status status{};
  std::atomic<bool> known = false;
};

HintFinder::Options FinderOptions(const PodResourcesServer& server) {
  HintFinder::Options options;
  options.deadline = server.timeout;
  return options;
}

}  // namespace

PodResources::PodResources(Options options)
    : options_(std::move(options)), finder_(options_.loop, FinderOptions(options_.server)) {}

void PodResources::SetWanted(bool wanted) {
  if (wanted == std::exchange(wanted_, wanted)) return;
  trial_.reset();
  again_.reset();
  problem_.reset();
  wrong_answer_ = false;
  if (wanted_) Try();
}

std::unique_ptr<HintFinder::Question> PodResources::Ask(
    const Pod& pod, const std::string& container, std::function<void(HintFinder::Hints)> answer) {
  if (options_.server.socket.empty() || options_.loop.Now() < paused_until_) return nullptr;
  return AskFor({.namespace_name = pod.namespace_name, .pod = pod.name, .container = container},
                /*trial=*/false, std::move(answer));
}

std::vector<Problem> PodResources::problems() const {
  if (!wanted_ || !problem_) return {};
  return {*problem_};
}

std::unique_ptr<HintFinder::Question> PodResources::AskFor(
    PodContainer container, bool trial, std::function<void(HintFinder::Hints)> answer) {
  const auto told = std::make_shared<Told>();
  auto find = [server = options_.server, container = std::move(container), told] {
    StatusOr<HintFinder::Hints> found = AskPodResources(server, container);
    told->status = found.status();
    told->known = true;
    return found.ok() ? *std::move(found) : HintFinder::Hints();
  };
  auto finish = [this, alive = lifetime_.token(), trial, told,
                 answer = std::move(answer)](HintFinder::Hints hints) {
    if (!alive.expired()) {
      Note(told->known
               ? told->status
               : DeadlineExceeded("no answer within {} ms", options_.server.timeout.count()),
           trial);
    }
    answer(std::move(hints));
  };
  return finder_.Ask(std::move(find), std::move(finish));
}

// Asks about a pod that does not exist: any answer shows that the kubelet serves these questions.
void PodResources::Try() {
  if (options_.server.socket.empty()) {
    Note(FailedPrecondition("-pod-resources-socket is disabled"), true);
    return;
  }
  trial_ = AskFor({}, /*trial=*/true, [](const HintFinder::Hints&) {});
  if (trial_ == nullptr) Note(DeadlineExceeded("earlier questions are not answered"), true);
}

void PodResources::Note(const Status& status, bool trial) {
  Logger& log = GetLogger("pod-resources");
  if (status.ok()) {
    if (trial && wrong_answer_) return;
    if (problem_) log.Info("the kubelet answers at {} again", options_.server.socket);
    problem_.reset();
    wrong_answer_ = false;
    again_.reset();
    paused_until_ = {};
    return;
  }
  if (status.code() == StatusCode::kDeadlineExceeded)
    paused_until_ = options_.loop.Now() + options_.pause;
  wrong_answer_ = !trial && status.code() != StatusCode::kDeadlineExceeded &&
                  status.code() != StatusCode::kUnavailable;
  const bool first = !problem_;
  if (first) {
    problem_ = Problem{
        .kind = "socket",
        .since = std::chrono::system_clock::now(),
        .next = "check that the kubelet runs, and that -pod-resources-socket names its socket"};
  }
  problem_->message = fmt::format(
      "the kubelet's pod resources are not known, so containers are placed without hints from "
      "them: {}",
      Printable(Message(status)));
  if (first) log.Warn("{}; {}", problem_->message, problem_->next);
  if (wanted_) again_ = options_.loop.After(options_.look_again, [this] { Try(); });
}

}  // namespace resmgr
