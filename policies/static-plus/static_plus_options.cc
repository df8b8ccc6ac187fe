// SPDX-License-Identifier: Apache-2.0
#include "policies/static-plus/static_plus_options.h"

#include "pkg/config/config_section.h"

namespace resmgr {
namespace {

void Describe(ConfigSection& section, StaticPlusOptions& options) {
  using enum StaticPlusOptions::Grant;
  section.Map("Options",
              [&](ConfigSection& map) { DescribeExclusiveOptions(map, options.exclusive); });
  DescribeAlignment(section, options.alignment);
  DescribeUndisturbed(section, options.undisturbed);
  section.Bool(
      "PreferIsolatedCPUs", options.exclusive.prefer_isolated,
      "isolated CPUs before ordinary CPUs; `false`: only for one CPU or one full core, and "
      "by annotation");
  section.Choice("ExclusiveCPUs",
                 {{"always", kAlways}, {"guaranteed", kGuaranteed}, {"annotated", kAnnotated}},
                 options.grant,
                 "the containers that get the whole CPUs of their request exclusively: rule 4");
  section.List("ReservedPoolNamespaces", options.reserved_pool_namespaces,
               "globs (`*`, `?`) of further reserved namespaces besides `kube-system`");
  options.privileged.Describe(section, "the annotation `prefer-reserved-cpus: \"true\"`");
}

}  // namespace

StatusOr<StaticPlusOptions> ReadStaticPlusOptions(const ConfigNode* section,
                                                  std::vector<ConfigKey>* keys) {
  return ReadSection<StaticPlusOptions>(section, "policy.static-plus", &Describe, keys);
}

}  // namespace resmgr
