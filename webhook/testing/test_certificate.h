// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace resmgr::webhook {

// A self-signed certificate for 127.0.0.1 and its key, in PEM form; with an elliptic curve, so that
// it is made in well under a millisecond.
struct TestCertificate {
  std::string certificate{};
  std::string key{};
};

// Valid from a day ago until this time from now.
TestCertificate MakeTestCertificate(const std::string& common_name,
                                    std::chrono::seconds valid_for = std::chrono::hours(24));

}  // namespace resmgr::webhook
