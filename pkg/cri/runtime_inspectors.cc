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

// Asks one runtime after the other until one has the object, or fails otherwise.
template <typename Result, typename Ask>
void InTurn(std::vector<RuntimeAccess*> runtimes, Ask ask, std::function<void(Result)> done) {
  RuntimeAccess& first = *runtimes.front();
  runtimes.erase(runtimes.begin());
  ask(first, [runtimes = std::move(runtimes), ask, done = std::move(done)](Result result) {
    const bool missing = StatusOf(result).code() == StatusCode::kNotFound;
    if (missing && !runtimes.empty()) return InTurn<Result>(runtimes, ask, done);
    done(std::move(result));
  });
}

template <typename Values>
void TakeOver(Values& from, Values& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
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

RuntimeInspectors::~RuntimeInspectors() = default;

std::vector<RuntimeAccess*> RuntimeInspectors::All() const {
  std::vector<RuntimeAccess*> all;
  for (const auto& inspector : inspectors_)
    all.push_back(inspector.get());
  return all;
}

std::vector<RuntimeAccess*> RuntimeInspectors::Candidates(Kind kind, std::string_view id) const {
  const auto owner = backends_.owners().Find(kind, id);
  if (owner.ok() && *owner) return {inspectors_[**owner].get()};
  return All();
}

void RuntimeInspectors::AskVersion(Done<Version> done) {
  inspectors_.front()->AskVersion([this, done = std::move(done)](StatusOr<Version> version) {
    // Left out: a pod of such a handler may be at another runtime, which may have other features.
    if (version.ok() && inspectors_.size() > 1) version->handlers.clear();
    done(std::move(version));
  });
}

void RuntimeInspectors::InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) {
  const auto ask = [id](RuntimeAccess& runtime, Done<SandboxFacts> answered) {
    runtime.InspectSandbox(id, std::move(answered));
  };
  InTurn(Candidates(Kind::kPodSandbox, id.value()), ask, std::move(done));
}

void RuntimeInspectors::InspectContainer(const ContainerId& id, Done<ContainerFacts> done) {
  const auto ask = [id](RuntimeAccess& runtime, Done<ContainerFacts> answered) {
    runtime.InspectContainer(id, std::move(answered));
  };
  InTurn(Candidates(Kind::kContainer, id.value()), ask, std::move(done));
}

void RuntimeInspectors::InspectImage(std::string_view reference, Done<ImageFacts> done) {
  const auto ask = [name = std::string(reference)](RuntimeAccess& runtime,
                                                   Done<ImageFacts> answered) {
    runtime.InspectImage(name, std::move(answered));
  };
  InTurn(All(), ask, std::move(done));
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
  // A failure, which may come at once, says nothing about how fast the others are.
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
    TakeOver(its->sandboxes, everything.sandboxes);
    TakeOver(its->containers, everything.containers);
  }
  if (listed == 0) failure.Update(away);
  if (!failure.ok()) return all.done(failure);
  all.done(std::move(everything));
}

void RuntimeInspectors::UpdateContainer(const ContainerId& id, const ResourceChange& change,
                                        std::function<void(Status)> done) {
  const auto ask = [id, change](RuntimeAccess& runtime, std::function<void(Status)> answered) {
    runtime.UpdateContainer(id, change, std::move(answered));
  };
  InTurn(Candidates(Kind::kContainer, id.value()), ask, std::move(done));
}

void RuntimeInspectors::StopContainer(const ContainerId& id, std::chrono::seconds grace,
                                      std::function<void(Status)> done) {
  const auto ask = [id, grace](RuntimeAccess& runtime, std::function<void(Status)> answered) {
    runtime.StopContainer(id, grace, std::move(answered));
  };
  InTurn(Candidates(Kind::kContainer, id.value()), ask, std::move(done));
}

void RuntimeInspectors::StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  const auto ask = [id](RuntimeAccess& runtime, std::function<void(Status)> answered) {
    runtime.StopSandbox(id, std::move(answered));
  };
  InTurn(Candidates(Kind::kPodSandbox, id.value()), ask, std::move(done));
}

void RuntimeInspectors::RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  const auto ask = [id](RuntimeAccess& runtime, std::function<void(Status)> answered) {
    runtime.RemoveSandbox(id, std::move(answered));
  };
  InTurn(Candidates(Kind::kPodSandbox, id.value()), ask, std::move(done));
}

}  // namespace resmgr
