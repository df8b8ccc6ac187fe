// SPDX-License-Identifier: Apache-2.0
#include "policies/static-plus/static_plus_policy.h"

#include <memory>

#include "policies/exclusive/exclusive_policy.h"
#include "policies/static-plus/static_plus_options.h"
#include "policies/static-plus/static_plus_rules.h"

namespace resmgr {
namespace {

ExclusivePolicy::Cpus PoolCpus(const PolicyContext& context) {
  const CpuSet unreserved = context.available - context.reserved;
  return {
      .shared = unreserved - context.machine.isolated(),
      .isolated = unreserved & context.machine.isolated(),
      .reserved = context.reserved,
      .lend_reserved = true,
      .unreserved = context.unreserved,
  };
}

StatusOr<std::unique_ptr<Policy>> MakeStaticPlus(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(const StaticPlusOptions options, ReadStaticPlusOptions(context.section));
  const Status fits = CheckExclusiveOptions(context.machine, options.exclusive);
  if (!fits.ok()) return Annotate(fits, "policy static-plus");
  const ExclusivePolicy::Cpus cpus = PoolCpus(context);
  if (cpus.shared.empty() && cpus.reserved.empty()) {
    return InvalidArgument(
        "policy static-plus: of the available CPUs ({}) none is left for shared containers without "
        "the isolated ones ({})",
        context.available.ToString(), cpus.isolated.ToString());
  }
  const auto claim = [options, has_reserved = !context.reserved.empty()](
                         const Pod& pod, const Container& container) {
    return StaticPlusClaim(options, has_reserved, pod, container);
  };
  const auto unheeded = [options](const Pod& pod, const Container& container) {
    return WhyNotHeeded(options, pod, container);
  };
  return std::make_unique<ExclusivePolicy>(
      "static-plus", context.machine, options.exclusive, cpus, PinningRule(context.runtimes),
      ExclusivePolicy::Rules{.claim = claim, .unheeded = unheeded});
}

}  // namespace

PolicyFactory StaticPlusPolicyFactory() {
  return {
      .name = "static-plus",
      .description =
          "the whole CPUs of every request are exclusive, the fraction is shared; "
          "system containers on reserved CPUs",
      .create = MakeStaticPlus,
      .read_section =
          [](const ConfigNode& section, std::vector<ConfigKey>* keys) {
            return ReadStaticPlusOptions(&section, keys).status();
          },
  };
}

}  // namespace resmgr
