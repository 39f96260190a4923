//! Attune from Rust through attune/c.h, without crates: translates and classifies the lines of standard input, compares
//! each with the first one, and continues a prompt with a language model, written token by token.
//!
//!   rustc --edition 2021 main.rs $(pkg-config --libs attune)        # the shared library
//!   main TRANSLATION_MODEL CLASSIFIER LANGUAGE_MODEL < sentences.txt

use std::ffi::{c_char, c_double, c_int, c_void, CStr, CString};
use std::io::{self, BufRead, Write};
use std::ptr::{null, null_mut};

/// The functions of attune/c.h that are used here. An object of the library is a pointer that only the library reads.
mod c {
    use super::*;

    pub type Object = *mut c_void;
    pub type Texts = *const *const c_char;
    pub type Added = extern "C" fn(user: *mut c_void, index: usize, added: *const c_char) -> c_int;

    extern "C" {
        pub fn attune_error_message() -> *const c_char;

        pub fn attune_translator_load(folder: *const c_char, translator: *mut Object) -> c_int;
        pub fn attune_translator_free(translator: Object);
        pub fn attune_translate(translator: Object, sentences: Texts, count: usize, options: *const c_char,
                                interrupt: Object, translations: *mut Object) -> c_int;
        pub fn attune_translation_text(translations: Object, sentence: usize, rank: usize) -> *const c_char;
        pub fn attune_translations_free(translations: Object);

        pub fn attune_classifier_load(folder: *const c_char, classifier: *mut Object) -> c_int;
        pub fn attune_classifier_free(classifier: Object);
        pub fn attune_classifier_label(classifier: Object, label: usize) -> *const c_char;
        pub fn attune_classify(classifier: Object, texts: Texts, count: usize, options: *const c_char,
                               interrupt: Object, classifications: *mut Object) -> c_int;
        pub fn attune_classification_label(classifications: Object, text: usize, rank: usize) -> usize;
        pub fn attune_classification_probability(classifications: Object, text: usize, rank: usize) -> c_double;
        pub fn attune_classifications_free(classifications: Object);

        pub fn attune_embedder_load(folder: *const c_char, embedder: *mut Object) -> c_int;
        pub fn attune_embedder_free(embedder: Object);
        pub fn attune_embedder_dimension(embedder: Object, options: *const c_char, dimension: *mut usize) -> c_int;
        pub fn attune_embed(embedder: Object, texts: Texts, count: usize, options: *const c_char,
                            vectors: *mut f32) -> c_int;

        pub fn attune_generator_load(folder: *const c_char, generator: *mut Object) -> c_int;
        pub fn attune_generator_free(generator: Object);
        pub fn attune_generate(generator: Object, prompts: Texts, count: usize, options: *const c_char,
                               callback: Added, user: *mut c_void, interrupt: Object, texts: *mut Object) -> c_int;
        pub fn attune_text_finish_reason(texts: Object, index: usize) -> *const c_char;
        pub fn attune_texts_free(texts: Object);
    }
}

/// The class of an error, a number of attune_status, and what is wrong.
#[derive(Debug)]
struct Error {
    status: c_int,
    message: String,
}

const FILE_ERROR: c_int = 2;

fn text_of(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn check(status: c_int) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    Err(Error { status, message: text_of(unsafe { c::attune_error_message() }) })
}

fn c_text(text: &str) -> CString {
    CString::new(text).expect("a text for Attune has no NUL")
}

/// An object of the library, which is freed when it goes out of scope.
struct Owned {
    object: c::Object,
    free: unsafe extern "C" fn(c::Object),
}

impl Owned {
    /// What `make` writes to its argument.
    fn new(free: unsafe extern "C" fn(c::Object), make: impl FnOnce(*mut c::Object) -> c_int) -> Result<Owned, Error> {
        let mut object = null_mut();
        check(make(&mut object))?;
        Ok(Owned { object, free })
    }

    fn load(folder: &str, load: unsafe extern "C" fn(*const c_char, *mut c::Object) -> c_int,
            free: unsafe extern "C" fn(c::Object)) -> Result<Owned, Error> {
        let folder = c_text(folder);
        Owned::new(free, |made| unsafe { load(folder.as_ptr(), made) })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { (self.free)(self.object) }
    }
}

struct Translator(Owned);

impl Translator {
    fn load(folder: &str) -> Result<Translator, Error> {
        Owned::load(folder, c::attune_translator_load, c::attune_translator_free).map(Translator)
    }

    fn translate(&self, sentence: &str) -> Result<String, Error> {
        let (sentence, options) = (c_text(sentence), c_text(r#"{"beam_size": 4}"#));
        let translated = Owned::new(c::attune_translations_free, |made| unsafe {
            c::attune_translate(self.0.object, &sentence.as_ptr(), 1, options.as_ptr(), null_mut(), made)
        })?;
        Ok(text_of(unsafe { c::attune_translation_text(translated.object, 0, 0) }))
    }
}

struct Classifier(Owned);

impl Classifier {
    fn load(folder: &str) -> Result<Classifier, Error> {
        Owned::load(folder, c::attune_classifier_load, c::attune_classifier_free).map(Classifier)
    }

    /// The likeliest label of a text and its probability.
    fn classify(&self, text: &str) -> Result<(String, f64), Error> {
        let text = c_text(text);
        let found = Owned::new(c::attune_classifications_free, |made| unsafe {
            c::attune_classify(self.0.object, &text.as_ptr(), 1, null(), null_mut(), made)
        })?;
        unsafe {
            let best = c::attune_classification_label(found.object, 0, 0);
            let label = text_of(c::attune_classifier_label(self.0.object, best));
            Ok((label, c::attune_classification_probability(found.object, 0, 0)))
        }
    }
}

struct Embedder(Owned);

impl Embedder {
    fn load(folder: &str) -> Result<Embedder, Error> {
        Owned::load(folder, c::attune_embedder_load, c::attune_embedder_free).map(Embedder)
    }

    /// The cosine of the angle between the vectors of two texts, which have length 1.
    fn similarity(&self, a: &str, b: &str) -> Result<f32, Error> {
        let (a, b, options) = (c_text(a), c_text(b), c_text(r#"{"normalize": true}"#));
        let mut dimension = 0;
        check(unsafe { c::attune_embedder_dimension(self.0.object, options.as_ptr(), &mut dimension) })?;
        let mut vectors = vec![0.0; 2 * dimension];
        let texts = [a.as_ptr(), b.as_ptr()];
        check(unsafe {
            c::attune_embed(self.0.object, texts.as_ptr(), texts.len(), options.as_ptr(), vectors.as_mut_ptr())
        })?;
        let (a, b) = vectors.split_at(dimension);
        Ok(a.iter().zip(b).map(|(x, y)| x * y).sum())
    }
}

struct Generator(Owned);

impl Generator {
    fn load(folder: &str) -> Result<Generator, Error> {
        Owned::load(folder, c::attune_generator_load, c::attune_generator_free).map(Generator)
    }

    /// Gives `write` what is added to the prompt, as soon as it is certain, and returns why the text ended. `write`
    /// returns whether to go on.
    fn generate<W: FnMut(&str) -> bool>(&self, prompt: &str, mut write: W) -> Result<String, Error> {
        extern "C" fn added<W: FnMut(&str) -> bool>(user: *mut c_void, _: usize, added: *const c_char) -> c_int {
            let write = unsafe { &mut *user.cast::<W>() };
            c_int::from(!write(&text_of(added)))
        }
        let (prompt, options) = (c_text(prompt), c_text(r#"{"max_tokens": 20}"#));
        let user: *mut W = &mut write;
        let texts = Owned::new(c::attune_texts_free, |made| unsafe {
            c::attune_generate(self.0.object, &prompt.as_ptr(), 1, options.as_ptr(), added::<W>, user.cast(),
                               null_mut(), made)
        })?;
        Ok(text_of(unsafe { c::attune_text_finish_reason(texts.object, 0) }))
    }
}

fn run(translation: &str, classification: &str, language: &str) -> Result<(), Error> {
    let translator = Translator::load(translation)?;
    let classifier = Classifier::load(classification)?;
    let embedder = Embedder::load(classification)?;
    let lines: Vec<String> = io::stdin().lock().lines().map(|line| line.expect("UTF-8")).collect();
    for line in &lines {
        let (label, probability) = classifier.classify(line)?;
        println!("{line}\n  {}\n  {label}, probability {probability:.2}", translator.translate(line)?);
        println!("  like the first: {:.3}", embedder.similarity(&lines[0], line)?);
    }

    let prompt = "The ";
    print!("{prompt}");
    let reason = Generator::load(language)?.generate(prompt, |added| {
        print!("{added}");
        io::stdout().flush().is_ok()
    })?;
    println!("\n{reason}");

    // An error has a class and says what is wrong.
    match Translator::load("no/such/folder") {
        Err(Error { status: FILE_ERROR, message }) => println!("as expected: {message}"),
        Err(error) => return Err(error),
        Ok(_) => panic!("a folder that is not there was loaded"),
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [translation, classification, language] = arguments.as_slice() else {
        eprintln!("usage: main TRANSLATION_MODEL CLASSIFIER LANGUAGE_MODEL < sentences.txt");
        std::process::exit(2);
    };
    if let Err(error) = run(translation, classification, language) {
        eprintln!("main: {} (status {})", error.message, error.status);
        std::process::exit(1);
    }
}
