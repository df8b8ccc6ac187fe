// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/push_state.h"

#include "pkg/model/cpu_numbers.h"

namespace resmgr {

void PushState::Take(SharedResources now, const CpuSet& everywhere) {
  applied = std::move(now);
  certain = true;
  possible = applied->cpus ? *applied->cpus : everywhere;
  held = applied->exclusive;
}

LinuxResources WithoutValuesOfOthers(const PushState& state, LinuxResources reported) {
  if (state.kept == nullptr) return reported;
  const auto ignore = [](const auto& of_others, auto& value) {
    if (of_others && value == of_others) value.reset();
  };
  ignore(state.kept->cpu_quota, reported.cpu_quota);
  ignore(state.kept->cpu_period, reported.cpu_period);
  return reported;
}

AppliedResources WithoutValuesOfOthers(const PushState& state, AppliedResources reported,
                                       const Container& container) {
  if (state.kept == nullptr) return reported;
  const AppliedResources desired = DesiredResources(container);
  const auto ignore = [](const auto& of_others, auto& value, const auto& wanted) {
    if (of_others && value == of_others) value = wanted;
  };
  ignore(state.kept->cpu_quota, reported.cpu_quota, desired.cpu_quota);
  ignore(state.kept->cpu_period, reported.cpu_period, desired.cpu_period);
  return reported;
}

AppliedResources AsWritten(PushState& state, AppliedResources reported) {
  if (state.noted == nullptr) return reported;
  if (reported.cpus != state.noted->cpus || reported.mems != state.noted->mems) {
    state.noted = nullptr;
    return reported;
  }
  reported.cpus = state.applied->cpus;
  reported.mems = state.applied->mems;
  return reported;
}

SharedResources OverApplied(SharedResources sent, const SharedResources& before) {
  const bool keeps_cpus = !sent->cpus && before->cpus;
  const bool keeps_mems = !sent->mems && before->mems;
  if (!keeps_cpus && !keeps_mems) return sent;
  AppliedResources now = *sent;
  if (keeps_cpus) now.cpus = before->cpus;
  if (keeps_mems) now.mems = before->mems;
  return Shared(now);
}

SharedResources WithNumbersBefore(AppliedResources sent, const PushState& state) {
  const auto complete = [&state](CpuNumber& value, const CpuNumber& before) {
    if (!value && state.certain) value = before;
  };
  ForEachCpuNumber(complete, sent, *state.applied);
  return Shared(std::move(sent));
}

SharedResources WithoutNumbers(const AppliedResources& resources, const ResourceValues& carried) {
  AppliedResources rest = resources;
  ForEachCpuNumber(
      [](CpuNumber& value, const CpuNumber& sent) {
        if (sent) value.reset();
      },
      rest, carried);
  return Shared(rest);
}

}  // namespace resmgr
