//! The options of a kernel as flags: `--num-warps 8`, `--debug`, `--enable-fp-fusion=false`.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use tilewright_compiler::options::{Info, Kind, OPTIONS, Options, Value};

/// A flag for each option that code depends on, from the table of options.
pub struct Flags(pub Options);

fn flags() -> impl Iterator<Item = &'static Info> {
    OPTIONS.iter().filter(|o| o.keyed())
}

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        flags().fold(command, |command, option| {
            let default = match option.default() {
                Value::None => String::new(),
                Value::Word(word) => format!(" [default: {word}]"),
                value => format!(" [default: {}]", value.to_string().to_lowercase()),
            };
            let arg = Arg::new(option.name)
                .long(option.name.replace('_', "-"))
                .action(ArgAction::Set)
                .value_name("VALUE")
                .help(format!("{}{default}", option.doc.trim()));
            command.arg(match option.kind {
                Kind::Flag => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
                _ => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Flags(Options::default());
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for option in flags() {
            if let Some(text) = matches.get_one::<String>(option.name) {
                let set = option.parse(text).and_then(|value| option.set(&mut self.0, value));
                set.map_err(|wrong| Error::raw(ErrorKind::InvalidValue, format!("{wrong}\n")))?;
            }
        }
        Ok(())
    }
}
