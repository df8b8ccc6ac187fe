// SPDX-License-Identifier: Apache-2.0
#include "policies/static-plus/static_plus_policy.h"

#include <utility>

#include "policies/static-plus/static_plus_rules.h"

namespace resmgr {
namespace {

ExclusivePools::Cpus PoolCpus(const PolicyContext& context) {
  const CpuSet unreserved = context.available - context.reserved;
  return {
      .shared = unreserved - context.machine.isolated(),
      .isolated = unreserved & context.machine.isolated(),
      .reserved = context.reserved,
      .lend_reserved = true,
      .unreserved = context.unreserved,
  };
}

}  // namespace

StatusOr<std::unique_ptr<Policy>> StaticPlusPolicy::Create(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(const StaticPlusOptions options, ReadStaticPlusOptions(context.section));
  const Status fits = CheckExclusiveOptions(context.machine, options.exclusive);
  if (!fits.ok()) return Annotate(fits, "policy static-plus");
  const ExclusivePools::Cpus cpus = PoolCpus(context);
  if (cpus.shared.empty() && cpus.reserved.empty()) {
    return InvalidArgument(
        "policy static-plus: of the available CPUs ({}) none is left for shared containers without "
        "the isolated ones ({})",
        context.available.ToString(), cpus.isolated.ToString());
  }
  return std::unique_ptr<Policy>(new StaticPlusPolicy(context, options));
}

StaticPlusPolicy::StaticPlusPolicy(const PolicyContext& context, const StaticPlusOptions& options)
    : ExclusivePolicy(
          context.machine, options.exclusive, PoolCpus(context),
          [options, has_reserved = !context.reserved.empty()](const Pod& pod,
                                                              const Container& container) {
            return StaticPlusClaim(options, has_reserved, pod, container);
          },
          PinningRule(context.runtimes)),
      options_(options),
      pinning_(context.runtimes) {}

std::vector<std::string> StaticPlusPolicy::Unheeded(const Pod& pod,
                                                    const Container& container) const {
  if (!pinning_.WhyUnbound(pod).empty()) return {};
  std::string why = WhyNotHeeded(options_, pod, container);
  if (why.empty()) return {};
  return {std::move(why)};
}

std::unique_ptr<Policy> StaticPlusPolicy::Clone() const {
  return std::make_unique<StaticPlusPolicy>(*this);
}

PolicyFactory StaticPlusPolicyFactory() {
  return {
      .name = "static-plus",
      .description =
          "the whole CPUs of every request are exclusive, the fraction is shared; "
          "system containers on reserved CPUs",
      .create = StaticPlusPolicy::Create,
      .read_section =
          [](const ConfigNode& section, std::vector<ConfigKey>* keys) {
            return ReadStaticPlusOptions(&section, keys).status();
          },
  };
}

}  // namespace resmgr
