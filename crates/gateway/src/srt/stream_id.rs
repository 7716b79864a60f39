/// What a stream identifier asks for (draft-sharabayko-srt, appendix B): free text, or `#!::key=value,…`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamId {
    /// As it came.
    pub text: String,
    /// `r`: the resource. In free text all of it.
    pub resource: Option<String>,
    /// `u`: the user.
    pub user: Option<String>,
    /// `m`: what the caller wants to do.
    pub mode: Option<String>,
    /// `t`: `stream` unless it says otherwise.
    pub kind: Option<String>,
}

impl StreamId {
    /// Reads an identifier; whatever it is, it is one.
    pub fn parse(text: &str) -> Self {
        let mut id = Self { text: text.to_owned(), ..Self::default() };
        let Some(content) = text.strip_prefix("#!:") else {
            id.resource = (!text.is_empty()).then(|| text.to_owned());
            return id;
        };
        // A nested block of one level reads like a list.
        let list = content.trim_start_matches([':', '{']).trim_end_matches('}');
        for (key, value) in list.split(',').filter_map(|pair| pair.split_once('=')) {
            let place = match key {
                "r" => &mut id.resource,
                "u" => &mut id.user,
                "m" => &mut id.mode,
                "t" => &mut id.kind,
                _ => continue,
            };
            *place = Some(value.to_owned());
        }
        id
    }

    /// The last part of the resource, which is what servers call the stream: `cam1` of `cam1`,
    /// `publish:cam1`, `live/cam1` and `#!::r=live/cam1,m=publish`.
    pub fn name(&self) -> Option<&str> {
        self.resource.as_deref()?.rsplit(['/', ':']).next().filter(|name| !name.is_empty())
    }

    /// Returns `true` if this is what is asked for by `wanted`: the same text, or the same resource.
    pub fn is(&self, wanted: &str) -> bool {
        self.text == wanted
            || self.resource.as_deref() == Some(wanted)
            || (self.resource.is_some() && self.resource == Self::parse(wanted).resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let id = StreamId::parse("#!::u=johnny,t=stream,m=publish,r=cam1,user_x=1");
        assert_eq!((id.resource.as_deref(), id.user.as_deref()), (Some("cam1"), Some("johnny")));
        assert_eq!((id.mode.as_deref(), id.kind.as_deref()), (Some("publish"), Some("stream")));
        assert!(id.is("cam1") && id.is("#!::r=cam1") && !id.is("cam2"));
        assert_eq!(StreamId::parse("#!:{r=a}").resource.as_deref(), Some("a"));
        assert_eq!(StreamId::parse("live/cam1").resource.as_deref(), Some("live/cam1"));
        for text in ["cam1", "publish:cam1", "publish/live/cam1", "#!::m=publish,r=live/cam1"] {
            assert_eq!(StreamId::parse(text).name(), Some("cam1"), "{text}");
        }
        assert_eq!(
            ["", "live/", "#!::u=x"].map(|text| StreamId::parse(text).name().map(str::to_owned)),
            [const { None }; 3]
        );
        let nothing = StreamId::parse("");
        assert!(nothing.resource.is_none() && !nothing.is("cam1") && !StreamId::parse("#!::u=x").is("#!::u=y"));
    }
}
