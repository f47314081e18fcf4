//! Operations that make and delete templates of indices.

use query::json::Node;
use serde_json::{Map, Value};

use engine::state::TemplateKind;

use super::context::Context;
use super::reader::{Object, Refusal};
use super::templates::{Kind, Template};
use super::{Request, Step};

/// The steps of an operation of a kind: of the templates that the track declares all, or the one that it names; where
/// the track declares none, of the one that it describes itself.
pub(super) fn of(
    context: &Context<'_>,
    kind: &Kind,
    operation_type: &str,
    object: &Object<'_>,
) -> Result<Vec<Step>, Refusal> {
    let reader = context.reader;
    let named = reader.text(object, "template");
    let declared: Vec<&Template> =
        context.templates.iter().filter(|template| template.kind.member == kind.member).collect();
    if let Some(name) = &named
        && !declared.is_empty()
        && declared.iter().all(|template| template.name != *name)
    {
        let known = declared.iter().map(|template| template.name.as_str());
        let near = record::names::did_you_mean(name, known);
        let said = format!("{} has no \"{name}\"{near}", kind.member);
        reader.wrong(object.at("template"), name, said);
    }
    let wanted = |template: &&&Template| named.as_ref().is_none_or(|name| template.name == *name);
    let wanted: Vec<&Template> = declared.iter().filter(wanted).copied().collect();
    if declared.is_empty() && named.is_none() {
        let said = format!("name a template, or declare {} in the track", kind.member);
        reader.wrong(object.node, operation_type, said);
        return Ok(Vec::new());
    }
    if operation_type == kind.create {
        context.only(object, operation_type, &["template", "body", "settings"]);
        return create(context, kind, object, &wanted, named.filter(|_| declared.is_empty()));
    }
    let own = ["template", "only-if-exists", "delete-matching-indices", "index-pattern"];
    context.only(object, operation_type, &own);
    let may_be_missing = reader.bool(object, "only-if-exists").unwrap_or(true);
    let query = context.query(object, &[]);
    let delete = |name: &str, indices: Option<&str>| {
        let path = format!("{}{name}{query}", kind.endpoint);
        let template = Request { may_be_missing, ..Request::new("DELETE", path, None) };
        let indices = indices.map(|pattern| Request {
            may_be_missing: true,
            ..Request::new("DELETE", format!("/{pattern}"), None)
        });
        [Some(template), indices].into_iter().flatten().map(Step::Request).collect::<Vec<_>>()
    };
    if let Some(name) = named.filter(|_| declared.is_empty()) {
        let pattern = reader.text(object, "index-pattern");
        let deletes = reader.bool(object, "delete-matching-indices").unwrap_or(false);
        if deletes && pattern.is_none() {
            let said = "delete-matching-indices needs an index-pattern";
            reader.wrong(object.node, "delete-matching-indices", said);
        }
        return Ok(delete(&name, pattern.as_deref().filter(|_| deletes)));
    }
    let of = |template: &&Template| {
        let indices = template.pattern.as_deref().filter(|_| template.deletes_indices);
        delete(&template.name, indices)
    };
    Ok(wanted.iter().flat_map(of).collect())
}

/// Templates that are put, with the operation's settings on top of their own.
fn create(
    context: &Context<'_>,
    kind: &Kind,
    object: &Object<'_>,
    wanted: &[&Template],
    own: Option<String>,
) -> Result<Vec<Step>, Refusal> {
    let query = context.query(object, &[]);
    let put = |name: &str, body: Value| {
        Step::Request(Request::new("PUT", format!("{}{name}{query}", kind.endpoint), Some(body)))
    };
    if let Some(name) = own {
        let Some(mut body) = object.plain("body") else {
            let said = format!("the track declares no {}: give a body", kind.member);
            context.reader.wrong(object.node, "template", said);
            return Ok(Vec::new());
        };
        context.leave_out(&format!("The template {name}"), &mut body);
        check(context, kind, object.at("body"), &body)?;
        return Ok(vec![put(&name, body)]);
    }
    let settings = object.plain("settings").and_then(|settings| settings.as_object().cloned());
    let mut steps = Vec::new();
    for template in wanted {
        if let Some(refused) = &template.refused {
            return Err(refused.clone());
        }
        let mut body = template.body.clone();
        if let Some(settings) = &settings {
            lay_over(kind, &mut body, settings);
            context.leave_out(&format!("The template {}", template.name), &mut body);
            check(context, kind, object.at("settings"), &body)?;
        }
        steps.push(put(&template.name, body));
    }
    Ok(steps)
}

/// Sets settings of a template.
fn lay_over(kind: &Kind, body: &mut Value, settings: &Map<String, Value>) {
    let empty = || Value::Object(Map::new());
    let inner = match (kind.of, body.as_object_mut()) {
        (TemplateKind::Legacy, inner) => inner,
        (_, body) => body.and_then(|b| b.entry("template").or_insert_with(empty).as_object_mut()),
    };
    let own = inner.and_then(|i| i.entry("settings").or_insert_with(empty).as_object_mut());
    own.into_iter().for_each(|own| own.extend(settings.clone()));
}

/// Refuses a template that the embedded engine would refuse.
fn check(context: &Context<'_>, kind: &Kind, node: &Node<'_>, body: &Value) -> Result<(), Refusal> {
    if !context.options.embedded {
        return Ok(());
    }
    rest::check_template(kind.of, body).map_err(|why| {
        let why = format!("the embedded engine does not take this template: {why}");
        context.reader.refusal(node, "", why)
    })
}
