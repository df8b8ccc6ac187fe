// SPDX-License-Identifier: Apache-2.0
#include "pkg/runtime/runtime_listing.h"

#include <utility>

namespace resmgr {

namespace {

// Limit of status calls under way.
constexpr size_t kWidth = 32;

}  // namespace

RuntimeInventory RuntimeListing::Result::ToInventory() && {
  RuntimeInventory inventory{.pods = {},
                             .containers = {},
                             .stopped_pods = {},
                             .unclear = std::move(unclear),
                             .brief = std::move(brief)};
  for (SandboxFacts& facts : sandboxes) {
    if (!facts.ready) inventory.stopped_pods.insert(facts.pod.id);
    inventory.pods.push_back(std::move(facts.pod));
  }
  for (ContainerFacts& facts : containers)
    inventory.containers.push_back(std::move(facts.container));
  return inventory;
}

RuntimeAccess::Everything RuntimeListing::Result::ToEverything() && {
  std::erase_if(sandboxes,
                [this](const SandboxFacts& facts) { return gone_pods.contains(facts.pod.id); });
  std::erase_if(containers, [this](const ContainerFacts& facts) {
    return gone_containers.contains(facts.container.id);
  });
  for (SandboxFacts& facts : sandboxes)
    facts.status_missing = unclear.pods.contains(facts.pod.id);
  for (ContainerFacts& facts : containers) {
    facts.status_missing = unclear.containers.contains(facts.container.id);
  }
  return {.sandboxes = std::move(sandboxes), .containers = std::move(containers)};
}

void RuntimeListing::Start(Questions questions, Known known, Done<Result> done) {
  const std::shared_ptr<RuntimeListing> self(
      new RuntimeListing(std::move(questions), std::move(known), std::move(done)));
  self->questions_.list([self](StatusOr<Objects> listed) { self->Take(std::move(listed)); });
}

void RuntimeListing::Take(StatusOr<Objects> listed) {
  if (!listed.ok()) return done_(listed.status());
  static_cast<Objects&>(result_) = *std::move(listed);
  for (SandboxFacts& facts : result_.sandboxes) {
    if (known_.pod && known_.pod(facts.pod)) {
      result_.brief.pods.insert(facts.pod.id);
    } else {
      Plan(questions_.sandbox, facts, facts.pod.id, result_.unclear.pods, result_.gone_pods);
    }
  }
  for (ContainerFacts& facts : result_.containers) {
    if (known_.container && known_.container(facts.container)) {
      result_.brief.containers.insert(facts.container.id);
    } else {
      Plan(questions_.container, facts, facts.container.id, result_.unclear.containers,
           result_.gone_containers);
    }
  }
  left_ = asks_.size();
  if (left_ == 0) return done_(std::move(result_));
  for (size_t i = 0; i < kWidth; ++i)
    AskNext();
}

template <typename Facts, typename RuntimeId>
void RuntimeListing::Plan(const Questions::AddStatus<Facts>& question, Facts& facts,
                          const RuntimeId& id, std::set<RuntimeId>& unclear,
                          std::set<RuntimeId>& gone) {
  asks_.push_back([this, &question, &facts, &id, &unclear, &gone] {
    question(facts, [self = shared_from_this(), &id, &unclear, &gone](const Status& status) {
      if (status.code() == StatusCode::kNotFound) {
        gone.insert(id);
      } else if (!status.ok()) {
        unclear.insert(id);
        self->result_.unclear.why.Update(status);
      }
      self->OnAnswer(status);
    });
  });
}

void RuntimeListing::AskNext() {
  if (next_ < asks_.size()) asks_[next_++]();
}

void RuntimeListing::OnAnswer(const Status& status) {
  if (!done_) return;
  if (questions_.unavailable_is_loss && status.code() == StatusCode::kUnavailable)
    return std::exchange(done_, nullptr)(status);
  AskNext();
  if (--left_ == 0) std::exchange(done_, nullptr)(std::move(result_));
}

}  // namespace resmgr
