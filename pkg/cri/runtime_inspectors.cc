// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_inspectors.h"

#include <iterator>
#include <optional>
#include <utility>

namespace resmgr {

namespace {

using Kind = IdOwners::Kind;

const Status& StatusOf(const Status& status) {
  return status;
}
template <typename Facts>
Status StatusOf(const StatusOr<Facts>& facts) {
  return facts.status();
}

// Whether the next runtime is asked after this result. A change ends at a runtime that does not
// answer, since that one may have carried it out.
bool GoesOn(const Status& change) {
  return change.code() == StatusCode::kNotFound;
}
template <typename Facts>
bool GoesOn(const StatusOr<Facts>& answer) {
  const StatusCode code = answer.status().code();
  return code == StatusCode::kNotFound || code == StatusCode::kUnavailable ||
         code == StatusCode::kDeadlineExceeded;
}

// Calls the method of one runtime after the other, until one has the object or returns an error
// that concerns it. If none has it, the result is the first error other than not found: that
// runtime may have it.
template <typename Result, typename Method, typename... Values>
void InTurn(std::vector<RuntimeAccess*> runtimes, std::function<void(Result)> done, Method method,
            Values... values) {
  RuntimeAccess& first = *runtimes.front();
  runtimes.erase(runtimes.begin());
  (first.*method)(values..., [runtimes = std::move(runtimes), done = std::move(done), method,
                              values...](Result result) {
    if (runtimes.empty() || !GoesOn(result)) return done(std::move(result));
    if (StatusOf(result).code() == StatusCode::kNotFound) {
      return InTurn(runtimes, done, method, values...);
    }
    const auto rest = [done, result = std::move(result)](Result later) {
      done(GoesOn(later) ? result : std::move(later));
    };
    InTurn(runtimes, std::function<void(Result)>(rest), method, values...);
  });
}

}  // namespace

// One run of InspectAll.
struct RuntimeInspectors::Collection {
  Done<Everything> done;
  IdOwners::ListBegin begin;
  // Results by runtime, once it has answered or is given up.
  std::vector<std::optional<StatusOr<Everything>>> answers;
  EventLoop::HandlePtr grace{};
  bool over = false;
};

RuntimeInspectors::RuntimeInspectors(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends)
    : loop_(loop), backends_(backends) {
  for (const Backends::Backend& backend : backends.all()) {
    inspectors_.push_back(std::make_unique<RuntimeConnection>(
        loop, flushes, backend.socket, backend.image_socket, backends.aliases()));
  }
}

std::vector<RuntimeAccess*> RuntimeInspectors::All() const {
  std::vector<RuntimeAccess*> all;
  for (const bool hanging : {false, true}) {
    for (size_t i = 0; i < inspectors_.size(); ++i)
      if (backends_.Hangs(i) == hanging) all.push_back(inspectors_[i].get());
  }
  return all;
}

std::vector<RuntimeAccess*> RuntimeInspectors::Candidates(Kind kind, std::string_view id) const {
  const auto owner = backends_.owners().Find(kind, id);
  if (owner.ok() && *owner) return {inspectors_[**owner].get()};
  return All();
}

void RuntimeInspectors::AskVersion(Done<Version> done) {
  const Done<Version> without_handlers = [this, done = std::move(done)](StatusOr<Version> version) {
    // With several runtimes the handlers are left out: a pod of such a handler may be at another
    // runtime, which may have other features.
    if (version.ok() && inspectors_.size() > 1) version->handlers.clear();
    done(std::move(version));
  };
  InTurn(All(), without_handlers, &RuntimeAccess::AskVersion);
}

void RuntimeInspectors::InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) {
  InTurn(Candidates(Kind::kPodSandbox, id.value()), std::move(done), &RuntimeAccess::InspectSandbox,
         id);
}

void RuntimeInspectors::InspectContainer(const ContainerId& id, Done<ContainerFacts> done) {
  InTurn(Candidates(Kind::kContainer, id.value()), std::move(done),
         &RuntimeAccess::InspectContainer, id);
}

void RuntimeInspectors::InspectImage(const PodSandboxId& pod, std::string_view reference,
                                     Done<ImageFacts> done) {
  InTurn(Candidates(Kind::kPodSandbox, pod.value()), std::move(done), &RuntimeAccess::InspectImage,
         pod, std::string(reference));
}

void RuntimeInspectors::InspectAll(Done<Everything> done) {
  const auto all = std::make_shared<Collection>(
      Collection{.done = std::move(done),
                 .begin = backends_.owners().BeginList(),
                 .answers = decltype(Collection::answers)(inspectors_.size())});
  for (size_t i = 0; i < inspectors_.size(); ++i) {
    inspectors_[i]->InspectAll(
        [this, all, i](StatusOr<Everything> its) { Take(all, i, std::move(its)); });
  }
}

void RuntimeInspectors::Take(const std::shared_ptr<Collection>& all, size_t runtime,
                             StatusOr<Everything> its) {
  if (all->over) return;
  all->answers[runtime] = std::move(its);
  const auto missing = [this, &all] {
    bool any = false;
    bool any_that_answers = false;
    for (size_t i = 0; i < all->answers.size(); ++i) {
      if (all->answers[i].has_value()) continue;
      any = true;
      any_that_answers = any_that_answers || !backends_.Hangs(i);
    }
    return std::pair(any, any_that_answers);
  };
  const auto [any, any_that_answers] = missing();
  if (!any) return End(*all);
  // If a runtime fails, perhaps at once, that does not show how fast the others should be.
  if (all->grace != nullptr || (any_that_answers && !all->answers[runtime]->ok())) return;
  all->grace = loop_.After(any_that_answers ? kGrace : std::chrono::milliseconds(0),
                           [this, weak = std::weak_ptr<Collection>(all)] {
                             if (const auto collection = weak.lock()) End(*collection);
                           });
}

void RuntimeInspectors::Learn(size_t runtime, const Everything& its, IdOwners::ListBegin begin) {
  std::vector<std::string_view> pods;
  for (const SandboxFacts& sandbox : its.sandboxes)
    pods.push_back(sandbox.pod.id.value());
  backends_.owners().SetAll(Kind::kPodSandbox, runtime, pods, begin);
  std::vector<std::string_view> containers;
  for (const ContainerFacts& facts : its.containers) {
    const RuntimeContainer& container = facts.container;
    if (backends_.IsOfOther(runtime, container.pod_id.value())) continue;
    containers.push_back(container.id.value());
  }
  backends_.owners().SetAll(Kind::kContainer, runtime, containers, begin);
}

void RuntimeInspectors::End(Collection& all) {
  if (std::exchange(all.over, true)) return;
  all.grace.reset();
  Everything everything;
  Status failure;
  Status away;
  size_t listed = 0;
  for (size_t i = 0; i < all.answers.size(); ++i) {
    if (!all.answers[i].has_value()) all.answers[i] = DeadlineExceeded("it does not answer");
    StatusOr<Everything>& its = *all.answers[i];
    if (!its.ok()) {
      const Status why = Annotate(its.status(), fmt::format("runtime {}", backends_.all()[i].name));
      const bool is_away =
          why.code() == StatusCode::kUnavailable || why.code() == StatusCode::kDeadlineExceeded;
      (is_away ? away : failure).Update(why);
      for (const Kind kind : {Kind::kPodSandbox, Kind::kContainer})
        for (const std::string_view id : backends_.owners().IdsOf(kind, i))
          everything.unlisted.emplace_back(id);
      continue;
    }
    ++listed;
    Learn(i, *its, all.begin);
    std::erase_if(its->sandboxes, [this, i](const SandboxFacts& sandbox) {
      return backends_.IsOfOther(i, sandbox.pod.id.value());
    });
    std::erase_if(its->containers, [this, i](const ContainerFacts& facts) {
      return backends_.IsOfOther(i, facts.container.pod_id.value(), facts.container.id.value());
    });
    std::ranges::move(its->sandboxes, std::back_inserter(everything.sandboxes));
    std::ranges::move(its->containers, std::back_inserter(everything.containers));
  }
  if (listed == 0) failure.Update(away);
  if (!failure.ok()) return all.done(failure);
  all.done(std::move(everything));
}

void RuntimeInspectors::UpdateContainer(const ContainerId& id, const ResourceChange& change,
                                        std::function<void(Status)> done) {
  InTurn(Candidates(Kind::kContainer, id.value()), std::move(done), &RuntimeAccess::UpdateContainer,
         id, change);
}

void RuntimeInspectors::StopContainer(const ContainerId& id, std::chrono::seconds grace,
                                      std::function<void(Status)> done) {
  InTurn(Candidates(Kind::kContainer, id.value()), std::move(done), &RuntimeAccess::StopContainer,
         id, grace);
}

void RuntimeInspectors::StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  InTurn(Candidates(Kind::kPodSandbox, id.value()), std::move(done), &RuntimeAccess::StopSandbox,
         id);
}

void RuntimeInspectors::RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  InTurn(Candidates(Kind::kPodSandbox, id.value()), std::move(done), &RuntimeAccess::RemoveSandbox,
         id);
}

}  // namespace resmgr
