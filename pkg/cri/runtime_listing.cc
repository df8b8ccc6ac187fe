// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_listing.h"

#include <utility>

#include "pkg/cri/inventory.h"
#include "pkg/cri/runtime_facts.h"

namespace resmgr {

namespace {

// Status calls in flight at once.
constexpr size_t kWidth = 32;

}  // namespace

void RuntimeListing::Start() {
  call_("ListPodSandbox", "",
        [self = shared_from_this()](const StatusOr<std::string>& reply) { self->OnPods(reply); });
}

void RuntimeListing::OnPods(const StatusOr<std::string>& reply) {
  auto pods = reply.ok() ? ReadPodList(*reply, aliases_) : reply.status();
  if (!pods.ok()) return done_(Annotate(pods.status(), "listing pod sandboxes"));
  for (Pod& pod : pods->pods) {
    SandboxFacts& facts = result_.sandboxes.emplace_back();
    facts.ready = !pods->stopped.contains(pod.id);
    facts.pod = std::move(pod);
  }
  call_("ListContainers", "", [self = shared_from_this()](const StatusOr<std::string>& list) {
    self->OnContainers(list);
  });
}

void RuntimeListing::OnContainers(const StatusOr<std::string>& reply) {
  auto containers = reply.ok() ? ReadContainerList(*reply) : reply.status();
  if (!containers.ok()) return done_(Annotate(containers.status(), "listing containers"));
  for (RuntimeContainer& container : *containers)
    result_.containers.emplace_back().container = std::move(container);
  ChooseUnknown();
  AskEach::Start(
      {.count = pods_.size() + containers_.size(),
       .width = kWidth,
       .ask = [self = shared_from_this()](
                  size_t number,
                  AskEach::Answered answered) { self->Ask(number, std::move(answered)); },
       .all_answered = [self = shared_from_this()] { self->done_(std::move(self->result_)); }});
}

void RuntimeListing::ChooseUnknown() {
  for (SandboxFacts& facts : result_.sandboxes) {
    if (known_.pod && known_.pod(facts.pod)) {
      result_.brief.pods.insert(facts.pod.id);
    } else {
      pods_.push_back(&facts);
    }
  }
  for (ContainerFacts& facts : result_.containers) {
    if (known_.container && known_.container(facts.container)) {
      result_.brief.containers.insert(facts.container.id);
    } else {
      containers_.push_back(&facts);
    }
  }
}

void RuntimeListing::Ask(size_t number, AskEach::Answered answered) {
  if (number < pods_.size()) {
    SandboxFacts& facts = *pods_[number];
    Ask("PodSandboxStatus", EncodeVerbosePodStatusRequest(facts.pod.id), facts, facts.pod.id,
        result_.unclear.pods, result_.gone_pods, std::move(answered));
  } else {
    ContainerFacts& facts = *containers_[number - pods_.size()];
    Ask("ContainerStatus", EncodeVerboseContainerStatusRequest(facts.container.id), facts,
        facts.container.id, result_.unclear.containers, result_.gone_containers,
        std::move(answered));
  }
}

template <typename Facts, typename RuntimeId>
void RuntimeListing::Ask(std::string_view method, const std::string& message, Facts& facts,
                         const RuntimeId& id, std::set<RuntimeId>& unclear,
                         std::set<RuntimeId>& gone, AskEach::Answered answered) {
  call_(method, message,
        [self = shared_from_this(), &facts, &id, &unclear, &gone,
         answered = std::move(answered)](const StatusOr<std::string>& reply) {
          const Status status = reply.ok() ? AddFacts(*reply, facts) : reply.status();
          if (status.code() == StatusCode::kNotFound) {
            gone.insert(id);
          } else if (!status.ok()) {
            unclear.insert(id);
            if (self->result_.unclear.why.ok()) self->result_.unclear.why = status;
          }
          answered();
        });
}

}  // namespace resmgr
