// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/resource_manager.h"

#include <utility>

#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {

ResourceManager::ResourceManager(EventLoop& loop, const Machine& machine,
                                 std::unique_ptr<Policy> policy, RuntimeClient& runtime,
                                 StateStore* state, Options options)
    : impl_(std::make_unique<Impl>(loop, machine, std::move(policy), runtime, state, options)) {}

ResourceManager::~ResourceManager() = default;

void ResourceManager::RuntimeConnected() {
  impl_->Connected();
}

void ResourceManager::RuntimeJoined() {
  impl_->Joined();
}

void ResourceManager::RuntimeDisconnected() {
  impl_->Disconnected();
}

void ResourceManager::Resync() {
  impl_->Resync();
}

void ResourceManager::OnContainerEvent(const ContainerEvent& event) {
  impl_->OnContainerEvent(event);
}

bool ResourceManager::RefreshTellsNews() const {
  return impl_->RefreshTellsNews();
}

void ResourceManager::Refresh(std::function<void(Status)> done) {
  impl_->Refresh(std::move(done));
}

bool ResourceManager::Knows(const ContainerId& id) const {
  return impl_->Knows(id);
}

bool ResourceManager::ready() const {
  return impl_->ready();
}

void ResourceManager::WhenReady(std::function<void(Status)> ready) {
  impl_->WhenReady(std::move(ready));
}

void ResourceManager::PodCreated(Pod pod, const Adjustment& sent) {
  impl_->AddPod(std::move(pod), sent);
}

void ResourceManager::PodResourcesChanged(const PodSandboxId& id, const LinuxResources& overhead,
                                          const LinuxResources& resources) {
  impl_->ChangePod(id, overhead, resources);
}

void ResourceManager::PodStopped(const PodSandboxId& id) {
  impl_->StopPod(id);
}

void ResourceManager::PodRemoved(const PodSandboxId& id) {
  impl_->RemovePod(id);
}

StatusOr<Admission> ResourceManager::AdmitCreate(CreateRequest&& request, Refusal refusal) {
  return impl_->AdmitCreate(std::move(request), refusal);
}

void ResourceManager::CreateSucceeded(ContainerKey key, ContainerId id, const Adjustment& sent) {
  impl_->CreateSucceeded(key, std::move(id), sent);
}

void ResourceManager::CreationSent(ContainerKey key, const Adjustment& sent) {
  impl_->CreationSent(key, sent);
}

void ResourceManager::CreateFailed(ContainerKey key, const Status& refusal) {
  impl_->CreateFailed(key, refusal);
}

void ResourceManager::RefusedByRuntime(ContainerKey key, std::string_view answer) {
  impl_->RefusedByRuntime(key, answer);
}

void ResourceManager::RefusedByRuntime(const ContainerId& id, std::string_view answer) {
  impl_->RefusedByRuntime(id, answer);
}

void ResourceManager::CreateUnclear(ContainerKey key) {
  impl_->CreateUnclear(key);
}

std::unique_ptr<ResourceManager::StartWait> ResourceManager::AdmitStart(
    const ContainerId& id, std::function<void(Status)> go) {
  return impl_->starts().Admit(id, std::move(go));
}

void ResourceManager::SetStartFailurePolicy(FailurePolicy policy) {
  impl_->starts().SetOnTimeout(policy);
}

void ResourceManager::SetRefusedUpdates(RefusedUpdates choice) {
  impl_->SetRefusedUpdates(choice);
}

void ResourceManager::StartSucceeded(const ContainerId& id) {
  impl_->starts().End(id, Starts::Outcome::kStarted);
}

void ResourceManager::StartFailed(const ContainerId& id) {
  impl_->starts().End(id, Starts::Outcome::kFailed);
}

void ResourceManager::StartUnclear(const ContainerId& id) {
  impl_->starts().End(id, Starts::Outcome::kUnanswered);
}

StatusOr<Admission> ResourceManager::AdmitUpdate(const ContainerId& id,
                                                 const LinuxResources& requested, Refusal refusal) {
  return impl_->AdmitUpdate(id, requested, refusal);
}

void ResourceManager::UpdateSucceeded(const Admission& admission, const ResourceValues& sent) {
  impl_->EndUpdate(admission, &sent);
}

void ResourceManager::UpdateFailed(const Admission& admission) {
  impl_->EndUpdate(admission, nullptr);
}

bool ResourceManager::SentOtherNumbers(const ContainerId& id, bool shares_in_file) const {
  return impl_->SentOtherNumbers(id, shares_in_file);
}

void ResourceManager::ShowAsked(const ContainerId& id, CpuNumbers& reported) const {
  impl_->ShowAsked(id, reported);
}

void ResourceManager::SetByStage(const ContainerId& id, const ResourceValues& values,
                                 bool accepted) {
  impl_->SetByStage(id, values, accepted);
}

void ResourceManager::ContainerStopped(const ContainerId& id) {
  impl_->Stop(id);
}

void ResourceManager::ContainerExited(const ContainerId& id) {
  impl_->End(id);
}

void ResourceManager::ContainerRemoved(const ContainerId& id) {
  impl_->Remove(id);
}

StatusOr<std::vector<ResourceManager::Move>> ResourceManager::PreviewPolicy(
    const Policy& policy) const {
  return impl_->PreviewPolicy(policy);
}

void ResourceManager::SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) {
  impl_->SetPolicy(std::move(policy), std::move(done));
}

Status ResourceManager::SetOffline(const Offline& offline, std::unique_ptr<Policy> policy) {
  return impl_->SetOffline(offline, std::move(policy));
}

void ResourceManager::AskRuntime(std::function<void(StatusOr<RuntimeInventory>)> done,
                                 std::function<bool(const ContainerId&)> wanted) {
  impl_->AskRuntime(std::move(done), std::move(wanted));
}

void ResourceManager::SendAgain(ContainerKey key) {
  impl_->SendAgain(key);
}

void ResourceManager::SendAgain(const ContainerId& id) {
  impl_->SendAgain(id);
}

StatusOr<std::vector<ResourceManager::Move>> ResourceManager::PreviewRebalance() const {
  return impl_->PreviewRebalance();
}

StatusOr<std::vector<ResourceManager::Move>> ResourceManager::Rebalance() {
  return impl_->Rebalance();
}

bool ResourceManager::Settled(ContainerKey key) const {
  return impl_->Settled(key);
}

bool ResourceManager::WrittenPastRuntime(ContainerKey key) const {
  return impl_->WrittenPastRuntime(key);
}

bool ResourceManager::AllReleased() const {
  return impl_->AllReleased();
}

Status ResourceManager::LastUpdateError(ContainerKey key) const {
  return impl_->LastUpdateError(key);
}

const Snapshot& ResourceManager::snapshot() const {
  return impl_->snapshot();
}

const Policy& ResourceManager::policy() const {
  return impl_->policy();
}

}  // namespace resmgr
