// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/method_parts.h"

#include <utility>

namespace resmgr {

StatusOr<std::string> TextOf(const nlohmann::json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end() || !found->is_string()) {
    return InvalidArgument("the request has no text \"{}\"", key);
  }
  return found->get<std::string>();
}

StatusOr<CpuSet> ChosenCpus(const Machine& machine, const std::string& list) {
  CpuSet all;
  for (const Cpu& cpu : machine.cpus())
    all.Add(cpu.id);
  if (list.empty()) return all;
  RESMGR_ASSIGN_OR_RETURN(CpuSet chosen, CpuSet::Parse(list));
  if (const CpuSet unknown = chosen - all; !unknown.empty())
    return NotFound("the machine has no CPU {}", unknown.ToString());
  return chosen;
}

bool StagesAtWork(const NodeView& node) {
  return node.pipeline.LooksAt(Operation::kCreateContainer);
}

StatusOr<ResourceManager*> Manager(const NodeView& node) {
  ResourceManager* const manager = node.host.manager();
  if (manager == nullptr) {
    return FailedPrecondition("the null policy is active: {}no container is placed",
                              StagesAtWork(node) ? "" : "calls pass unread, and ");
  }
  return manager;
}

const ResourceManager* Releasing(const NodeView& node) {
  return node.host.manager() == nullptr ? node.host.updating_manager() : nullptr;
}

std::string WhyNoneIsKnown(const NodeView& node) {
  const ResourceManager* const manager = node.host.manager();
  if (manager == nullptr) return "the null policy is active, which places none";
  bool some = false;
  manager->snapshot().ForEachContainer([&some](const Pod&, const Container&) { some = true; });
  if (some) return "";
  if (const std::string runtime = node.runtime_state(); runtime != "connected")
    return fmt::format("the runtime is not connected ({})", runtime);
  return manager->synchronizer().ready() ? ""
                                         : "the daemon is still reading what the runtime holds";
}

StatusOr<std::string> TextOrNone(const nlohmann::json& request, const char* key) {
  if (!request.contains(key)) return std::string();
  return TextOf(request, key);
}

bool IsTrue(const nlohmann::json& request, const char* key) {
  const auto found = request.find(key);
  return found != request.end() && found->is_boolean() && found->get<bool>();
}

StatusOr<ContainerChoice> ChoiceOf(const nlohmann::json& request) {
  ContainerChoice choice;
  RESMGR_ASSIGN_OR_RETURN(choice.namespace_name, TextOrNone(request, "namespace"));
  RESMGR_ASSIGN_OR_RETURN(const std::string selector, TextOrNone(request, "selector"));
  RESMGR_ASSIGN_OR_RETURN(choice.labels, LabelSelector::Parse(selector));
  return choice;
}

void FirstLook::Then(EventLoop::Task task) {
  if (IsOver()) {
    task();
    return;
  }
  waiting_.push_back(std::move(task));
  if (timer_ == nullptr)
    timer_ = node_.loop.Every(std::chrono::milliseconds(10), [this] { Look(); });
}

bool FirstLook::IsOver() {
  if (over_) return true;
  // The null policy looks at no containers.
  const ResourceManager* const manager = node_.host.manager();
  if (manager == nullptr) return true;
  over_ =
      manager->synchronizer().ready() || std::chrono::steady_clock::now() - started_ >= kLongest;
  return over_;
}

void FirstLook::Look() {
  if (!IsOver()) return;
  const EventLoop::HandlePtr ended = std::exchange(timer_, nullptr);
  for (const EventLoop::Task& task : std::exchange(waiting_, {}))
    task();
}

}  // namespace resmgr
