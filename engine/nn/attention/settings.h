// SPDX-License-Identifier: MIT
// The settings of the kinds of attention. A kind has a struct of options, which declares its fields as settings:
//
//   struct LunaOptions {
//       int slots = 16;
//       void declare(AttentionSettings& s) { s.add("slots", &slots, "rows that keys are packed into", 1, 65536); }
//   };
//
// The value that a field has when add() is called is the default. If the user has given a value for the setting,
// add() stores the user's value in the field. Several kinds may have a setting of the same name, each with its own
// help text.
#pragma once
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace masquerade {

using AttentionValue = std::variant<bool, int, double, std::string>;
using AttentionOptions = std::map<std::string, AttentionValue>;  // the values that the user has given, by key

struct AttentionSetting {
    std::string key, help;
    AttentionValue start;            // the default
    double low, high;                // smallest and largest allowed value, if the setting is a number
    std::vector<std::string> words;  // allowed values, if the setting is a text
};

class AttentionSettings {
  public:
    explicit AttentionSettings(const AttentionOptions& given) : given_(given) {}
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    void add(const char* key, T* value, const char* help, double low = 0, double high = 0) {
        declare({key, help, *value, low, high, {}}, value);
    }
    void add(const char* key, std::string* value, const char* help, const std::vector<std::string>& words) {
        declare({key, help, *value, 0, 0, words}, value);
    }
    std::vector<AttentionSetting> all;

  private:
    template <class T>
    void declare(const AttentionSetting& setting, T* value) {
        all.push_back(setting);
        if (const auto found = given_.find(setting.key); found != given_.end()) *value = std::get<T>(found->second);
    }
    const AttentionOptions& given_;
};

// The help text of the setting `slots`, which several kinds have.
constexpr const char* help_of_slots =
    "number of packed rows; a packed row is a weighted sum of keys, and queries attend to packed rows instead of keys";

template <class Options>
Options options_of(const AttentionOptions& given) {
    AttentionSettings settings(given);
    Options options;
    options.declare(settings);
    return options;
}
template <class Options>
std::vector<AttentionSetting> settings_of() {
    const AttentionOptions none;
    AttentionSettings settings(none);
    Options().declare(settings);
    return settings.all;
}

// Returns the beginning of a help text, which lists the kinds that have a setting, such as "luna, linformer: ".
std::string of_kinds(const std::vector<std::string>& names);
// Returns the settings of all kinds of attention, each key once. The help texts say which kinds have the setting.
std::vector<AttentionSetting> attention_settings();

}  // namespace masquerade
